//! Imports chats of Gemini CLI: JSONL in which later lines change or take back earlier ones, or, from older versions, one
//! JSON object with all messages.
//!
//! Lines are indexed first and then read again, since a reply is written again when its calls are done, and since each
//! resume repeats the whole conversation.

mod entry;
mod index;

use std::io::{BufRead, Seek};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::json_values::parse_timestamp;
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::line_seeker::LineSeeker;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use entry::EntryReader;
use index::{Node, TranscriptIndex};

const PROGRAM: &str = "gemini";

/// Returns whether an object is the first line of a chat.
pub(super) fn is_start(fields: &RawObject<'_>) -> bool {
    fields.has("projectHash") && fields.has("sessionId")
}

/// Imports one conversation.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let is_jsonl = {
        let mut lines = LineReader::new(&mut *source);
        let first = lines.next()?.and_then(|line| line.bytes.map(RawObject::from_bytes));
        !matches!(&first, Some(Ok(fields)) if fields.has("messages")) && matches!(first, Some(Ok(_)))
    };
    source.rewind()?;
    if is_jsonl { import_lines(source, writer) } else { import_object(source, writer) }
}

fn import_lines(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ChatMetadata::default();
    let mut index = TranscriptIndex::default();
    let mut lines = LineReader::new(&mut *source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset / 2);
        let (number, offset) = (line.number, line.offset);
        let parsed = line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        let read = parsed.and_then(|fields| {
            if is_start(&fields) {
                fields.iter().for_each(|(key, value)| about.set(key, value.get()));
                return Ok(());
            }
            if let Some(set) = fields.get("$set").and_then(RawObject::from_value) {
                set.iter().for_each(|(key, value)| about.set(key, value.get()));
            }
            index.add_line(&fields, (number, offset), &mut about)
        });
        if let Err(reason) = read {
            writer.skip(number, reason);
        }
    }
    for line in &index.rewound {
        writer.leave_out(*line, "on a branch that was abandoned");
    }
    let mut reader = LineSeeker::new(source)?;
    let mut entries = EntryReader::default();
    for &Node { offset, list_entry, line, .. } in &index.nodes {
        writer.sink.report_progress(reader.progress());
        let Ok(fields) = RawObject::from_bytes(reader.read_line_at(offset)?) else {
            writer.skip(line, "the line changed while being read");
            continue;
        };
        let listed = match list_entry.checked_sub(1) {
            None => None,
            Some(at) => {
                let set = fields.get("$set").and_then(RawObject::from_value);
                let list = set.as_ref().and_then(|set| set.get("messages")).and_then(list_entries);
                let Some(&raw) = list.as_ref().and_then(|list| list.get(at as usize)) else { continue };
                RawObject::from_value(raw)
            }
        };
        if let Err(reason) = entries.write(listed.as_ref().unwrap_or(&fields), &mut about, writer)? {
            writer.skip(line, reason);
        }
    }
    writer.end_session(about.finish())?;
    Ok(())
}

/// Imports a chat of an older version.
fn import_object(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ChatMetadata::default();
    let mut entries = EntryReader::default();
    let mut value = Vec::new();
    let walked = Scanner::new(source).for_each_field(|scanner, key| {
        if key != "messages" || scanner.peek()? != Some(b'[') {
            if scanner.read_value(Some(&mut value))? {
                about.set(key, std::str::from_utf8(&value).unwrap_or_default());
            }
            return Ok(());
        }
        scanner.for_each_entry(|entry| {
            writer.sink.report_progress(entry.position);
            let number = entry.number;
            let read = match entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes) {
                Ok(fields) => entries.write(&fields, &mut about, writer)?,
                Err(reason) => Err(reason),
            };
            if let Err(reason) = read {
                writer.skip(number, reason);
            }
            Ok(())
        })
    });
    if let Err(error) = walked {
        let (line, reason) = error.into_line_and_reason()?;
        if writer.message_count() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(line, reason);
    }
    writer.end_session(about.finish())?;
    Ok(())
}

/// Metadata of a chat.
#[derive(Debug, Default)]
struct ChatMetadata {
    about: ImportedMetadata,
    project_hash: Option<String>,
    is_subagent: bool,
    /// The first words of the conversation, for a subagent, which has no title.
    first_words: Option<String>,
}

impl ChatMetadata {
    fn set(&mut self, key: &str, value: &str) {
        let text = || serde_json::from_str::<String>(value).ok().filter(|text| !text.trim().is_empty());
        let about = &mut self.about;
        match key {
            "sessionId" => about.conversation = about.conversation.take().or_else(text),
            "projectHash" => self.project_hash = text(),
            "startTime" => about.started_at = serde_json::from_str(value).ok().and_then(parse_timestamp),
            "summary" => about.description = text().or(about.description.take()),
            "kind" => self.is_subagent = text().is_some_and(|kind| kind == "subagent"),
            "directories" => {
                let directories: Vec<String> = serde_json::from_str(value).unwrap_or_default();
                self.set_project(directories.iter().map(String::as_str));
            }
            _ => {}
        }
    }

    /// Sets the directory of the conversation: the one with the hash of the chat, otherwise the first.
    fn set_project<'a>(&mut self, directories: impl Iterator<Item = &'a str> + Clone) {
        let is_hashed =
            |directory: &&str| self.project_hash.as_ref().is_some_and(|hash| *hash == sha256_hex(directory));
        let found = directories.clone().find(is_hashed).or_else(|| directories.clone().next());
        self.about.project = self.about.project.take().or_else(|| found.map(str::to_owned));
    }

    /// Reads the list of directories in the context that the program puts before the first message.
    fn read_context(&mut self, text: &str) {
        let listed = text.split_once("- **Workspace Directories:**").map_or("", |(_, rest)| rest);
        let directories = listed.lines().skip(1).map_while(|line| line.trim_start().strip_prefix("- "));
        self.set_project(directories.filter(|directory| directory.starts_with('/')));
    }

    fn finish(self) -> ImportedMetadata {
        let mut about = self.about;
        let derived = |id: &str| Uuid::parse_str(id).unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{id}")));
        about.id = about.conversation.as_deref().map(derived);
        if self.is_subagent {
            about.side_chain = true;
            about.tags = vec!["side-chain".into()];
            about.description = about.description.or(self.first_words);
        }
        about
    }
}

fn sha256_hex(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
