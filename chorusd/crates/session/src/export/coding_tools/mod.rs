//! Exports sessions as files of other coding agents, which continue the conversation from them.
//!
//! [`entries`] turns each message into the parts that all of them have: texts, calls with their results, and summaries
//! of earlier messages. A module for each program writes them. System prompts and thinking are left out.

mod claude_code;
mod codex;
mod entries;
mod gemini;
mod id_check;
mod opencode;
mod texts;
mod working_set;

use std::io::{self, Write};

use chorus_proto::SessionHeader;
use chorus_proto::methods::export::{ExportFormat, ExportTarget};
use jiff::Timestamp;

use super::{Export, MessageList, Progress};
use crate::stored_message::StoredMessage;
pub(super) use entries::ToolProgress;
use entries::{Entry, EntryRules};

/// The file that is written.
#[derive(Debug, Clone, Copy)]
struct ToolFile<'a> {
    header: &'a SessionHeader,
    target: &'a ExportTarget,
    began_at: Timestamp,
}

/// Writes the part before the messages, or the one after them.
pub(super) fn write_frame(
    out: &mut impl Write,
    export: &Export<'_>,
    progress: &mut Progress,
    messages: &dyn MessageList,
) -> io::Result<()> {
    let file = ToolFile::new(export)?;
    if progress.frames > 0 {
        return match export.form {
            ExportFormat::ClaudeCode => claude_code::write_end(out, file),
            ExportFormat::Opencode => opencode::write_end(out),
            _ => Ok(()),
        };
    }
    progress.tool = ToolProgress::new(id_check::find_repeated(messages)?);
    match export.form {
        ExportFormat::Codex => codex::write_start(out, file)?,
        ExportFormat::Gemini => gemini::write_start(out, file)?,
        ExportFormat::Opencode => opencode::write_start(out, file)?,
        _ => {}
    }
    let summary = working_set::render(export.header).map(|text| Entry::Summary { text });
    progress.tool.has_begun = summary.is_some();
    write_entries(
        out,
        export,
        progress,
        EntryGroup { number: 0, id: "", at: file.began_at },
        summary.into_iter().collect(),
    )
}

/// Writes a message.
pub(super) fn write_message(
    out: &mut impl Write,
    export: &Export<'_>,
    progress: &mut Progress,
    messages: &dyn MessageList,
    message: &StoredMessage,
) -> io::Result<()> {
    let message = message.to_message()?;
    let number = progress.messages + 1;
    let is_grouped = matches!(export.form, ExportFormat::Gemini | ExportFormat::Opencode);
    let needs_question = matches!(export.form, ExportFormat::ClaudeCode | ExportFormat::Opencode);
    let rules = EntryRules { needs_object: export.form != ExportFormat::Codex, is_grouped, needs_question };
    let mut following = || messages.iter_from(number);
    let (id, at) = (message.id.clone(), message.timestamp);
    let entries = progress.tool.convert(message, number, rules, &mut following)?;
    write_entries(out, export, progress, EntryGroup { number, id: &id, at }, entries)
}

/// The message that entries were made of.
#[derive(Debug, Clone, Copy)]
struct EntryGroup<'a> {
    number: u64,
    id: &'a str,
    at: Timestamp,
}

fn write_entries(
    out: &mut impl Write,
    export: &Export<'_>,
    progress: &mut Progress,
    group: EntryGroup<'_>,
    entries: Vec<Entry>,
) -> io::Result<()> {
    let file = ToolFile::new(export)?;
    match export.form {
        ExportFormat::ClaudeCode => claude_code::write_entries(out, file, &mut progress.tool, group, entries),
        ExportFormat::Gemini => gemini::write_entries(out, &progress.tool, group, entries),
        ExportFormat::Opencode => opencode::write_entries(out, file, &mut progress.tool, group, entries),
        _ => codex::write_entries(out, group, entries),
    }
}

impl<'a> ToolFile<'a> {
    fn new(export: &Export<'a>) -> io::Result<Self> {
        let target = export.target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { header: export.header, target, began_at: export.began_at() })
    }

    /// Returns the title, on one line.
    fn title(&self) -> Option<String> {
        let title = self.header.description.as_deref()?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!title.is_empty()).then_some(title)
    }
}

/// Formats a time as these programs do.
fn time_text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Writes a line of JSON.
fn write_line(out: &mut impl Write, line: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests;
