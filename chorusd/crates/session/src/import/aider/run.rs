//! One run of aider: prompts, replies, and its own notices.
//!
//! Lines of a prompt begin with `#### ` and notices with `> `, and both end with two spaces. A reply can have lines that begin
//! in the same way, for example in a block of code.

use std::collections::HashMap;
use std::io;

use chorus_base::hex::hex;
use chorus_proto::Role;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

use super::PROGRAM;
use super::notice::Notice;
use crate::file::derived_id;
use crate::import::json_values::json_string;
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::TurnEntry;
use crate::import::writer::SessionWriter;

/// The end of each line of a prompt, and of each notice.
const LINE_END: &str = "  ";

const FENCE: &str = "```";

/// A run that is being read.
#[derive(Debug)]
pub(super) struct Run {
    /// Local time.
    started: DateTime,
    at: Timestamp,
    model: Option<String>,
    /// Hash of the first prompt, which tells runs apart that began in the same second.
    first_prompt: Option<String>,
    /// The message that is being read: a prompt, or a reply.
    open: Option<Open>,
    /// A reply that is complete, except for the notices that follow it.
    last: Option<TurnEntry>,
    count: u64,
    line: u64,
}

/// The text of a message that is being read.
#[derive(Debug)]
struct Open {
    role: Role,
    text: String,
    in_fence: bool,
}

impl Run {
    /// Begins a run. aider writes the time without its zone, which is taken to be that of this machine.
    pub(super) fn new(started: DateTime, line: u64) -> Self {
        let at = started.to_zoned(TimeZone::system()).map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp());
        Self { started, at, model: None, first_prompt: None, open: None, last: None, count: 0, line }
    }

    /// Adds the line with this number. Blank lines are left out by the reader.
    pub(super) fn add_line(&mut self, number: u64, text: &str, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let blank_lines = number.saturating_sub(self.line + 1);
        self.line = number;
        let in_fence = self.open.as_ref().is_some_and(|open| open.in_fence);
        let ended = text.ends_with(LINE_END) && !in_fence;
        if let Some(prompt) = text.strip_prefix("#### ").filter(|_| ended) {
            return self.add_prompt(prompt.trim_end(), blank_lines, writer);
        }
        if let Some(notice) = text.strip_prefix("> ").filter(|_| ended) {
            self.close(writer)?;
            self.add_notice(notice.trim_end());
            return Ok(());
        }
        if self.first_prompt.is_none() && self.open.is_none() {
            // What aider prints at its start.
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|open| open.role == Role::User) {
            self.close(writer)?;
        }
        let open =
            self.open.get_or_insert_with(|| Open { role: Role::Assistant, text: String::new(), in_fence: false });
        if !open.text.is_empty() {
            open.text.extend(std::iter::repeat_n('\n', usize::try_from(blank_lines).unwrap_or(0) + 1));
        }
        open.text.push_str(text);
        open.in_fence ^= text.trim_start().starts_with(FENCE);
        Ok(())
    }

    fn add_prompt(&mut self, line: &str, blank_lines: u64, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        match &mut self.open {
            Some(open) if open.role == Role::User && blank_lines == 0 => {
                open.text.push('\n');
                open.text.push_str(line);
            }
            _ => {
                self.close(writer)?;
                self.open = Some(Open { role: Role::User, text: line.to_owned(), in_fence: false });
            }
        }
        Ok(())
    }

    fn add_notice(&mut self, text: &str) {
        match Notice::parse(text) {
            Notice::Model(model) => self.model = Some(model.to_owned()),
            Notice::Usage(usage) => {
                if let Some(reply) = self.last.as_mut().filter(|last| last.role == Role::Assistant) {
                    reply.usage = Some(usage);
                }
            }
            Notice::Other(text) => {
                if let Some(last) = &mut self.last {
                    last.extra.push(("notices".into(), json_string(text)));
                }
            }
        }
    }

    /// Ends the message that is being read. It is written when the next one ends, because notices can follow it.
    fn close(&mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let text = open.text.trim_end();
        if open.role == Role::User && self.first_prompt.is_none() {
            self.first_prompt = Some(hex(&Sha256::digest(text)[..4]));
        }
        if text.is_empty() {
            return Ok(());
        }
        self.count += 1;
        let mut entry = TurnEntry::new(PROGRAM, open.role);
        entry.id = Some(self.count.to_string());
        entry.at = Some(self.at);
        entry.texts.push(text.to_owned());
        match self.last.replace(entry) {
            Some(before) => before.write(writer),
            None => Ok(()),
        }
    }

    /// Ends the run. `starts` counts the runs of the file that begin in the same way.
    pub(super) fn finish(
        mut self,
        starts: &mut HashMap<String, u64>,
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<()> {
        self.close(writer)?;
        if let Some(last) = self.last.take() {
            last.write(writer)?;
        }
        let Some(first_prompt) = self.first_prompt else { return Ok(()) };
        let mut conversation = format!("{}-{first_prompt}", self.started.strftime("%Y%m%dT%H%M%S"));
        let count = starts.entry(conversation.clone()).or_default();
        *count += 1;
        if *count > 1 {
            conversation = format!("{conversation}-{count}");
        }
        writer.end_session(ImportedMetadata {
            id: Some(derived_id(&format!("{PROGRAM}/{conversation}"))),
            conversation: Some(conversation),
            started_at: Some(self.at),
            model: self.model,
            ..ImportedMetadata::default()
        })
    }
}
