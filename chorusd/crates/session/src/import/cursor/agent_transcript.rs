//! Transcripts of Cursor's agent: a line for each message, with the content of Anthropic's API below `message`, but without ids, times
//! and models. The time of a prompt is in its text; the name of the file has the id of the conversation.

use std::io::{self, BufRead};

use chorus_proto::{Role, ToolCall};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::PROGRAM;

use crate::file::derived_id;
use crate::import::anthropic_blocks::content::{ContentBlock, ToolOutput, parse_content};
use crate::import::json_values::{json_string, minify_value};
use crate::import::line_reader::{LINE_TOO_LONG, LineReader};
use crate::import::raw_object::RawObject;
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry};
use crate::import::writer::SessionWriter;

/// Stands where a thought was.
const REDACTED: &str = "[REDACTED]";

/// The type of a line between turns.
const TURN_ENDED: &str = "turn_ended";

/// Returns whether a line is a message of a transcript.
pub(in crate::import) fn is_message(fields: &RawObject<'_>) -> bool {
    let message = || fields.get("message").and_then(RawObject::from_value);
    parse_role(fields).is_some()
        && fields.iter().all(|(key, _)| matches!(key, "role" | "message"))
        && message().is_some_and(|message| message.has("content"))
}

/// Imports one conversation.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    let mut lines = LineReader::new(source);
    let mut transcript = TranscriptReader::default();
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset);
        let number = line.number;
        match line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(|line| transcript.parse(line, number)) {
            Ok(entries) => entries.into_iter().try_for_each(|entry| entry.write(writer))?,
            Err(reason) => writer.skip(number, reason),
        }
    }
    writer.end_session(ImportedMetadata { started_at: transcript.started_at, ..ImportedMetadata::default() })
}

/// Parses the lines in order.
#[derive(Debug, Default)]
struct TranscriptReader {
    /// The time of the first prompt that has one.
    started_at: Option<Timestamp>,
    /// The time of the last prompt, which is that of the reply.
    at: Option<Timestamp>,
    /// Ids and names of tool calls without a result.
    open_calls: Vec<(String, String)>,
}

impl TranscriptReader {
    /// Parses a line: results of tools, which are before a text of the user, then the message.
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Vec<TurnEntry>, String> {
        let fields = RawObject::from_bytes(line)?;
        if fields.get_text("type").is_some_and(|kind| kind == TURN_ENDED) {
            self.open_calls.clear();
            return Ok(Vec::new());
        }
        let role = parse_role(&fields).ok_or("no role")?;
        let message = fields.get("message").and_then(RawObject::from_value).ok_or("no message")?;
        let content = parse_content(message.get("content").ok_or("no content")?)?;
        let mut results = TurnEntry::new(PROGRAM, role);
        let mut entry = TurnEntry::new(PROGRAM, role);
        for block in content.0 {
            match block {
                ContentBlock::Text(text) if role == Role::User => entry.texts.extend(self.parse_prompt(&text)),
                ContentBlock::Text(text) => entry.texts.extend(parse_reply(&text)),
                ContentBlock::Call { id, name, input } => {
                    let number_of_call = entry.calls.len() + 1;
                    let id = if id.is_empty() { format!("call_{number}_{number_of_call}") } else { id.into() };
                    self.open_calls.push((id.clone(), name.to_string()));
                    let params = input.map_or_else(|| json_string(""), minify_value);
                    entry.calls.push(ToolCall { id, name: name.into(), params });
                }
                ContentBlock::Result(output) => {
                    let of = if role == Role::User { &mut results } else { &mut entry };
                    of.results.push(self.parse_result(output));
                }
                ContentBlock::File(file) => {
                    let number_of_file = entry.attachments.len() + 1;
                    entry.attachments.push(file.into_attachment(number_of_file));
                }
                ContentBlock::Other(raw) => {
                    let kind = RawObject::from_value(raw).and_then(|part| part.get_filled("type"));
                    // Only says that there was a thought.
                    if kind.as_deref() != Some("redacted") {
                        entry.extra.push((kind.unwrap_or_else(|| "part".into()), minify_value(raw)));
                    }
                }
            }
        }
        (results.at, entry.at) = (self.at, self.at);
        // The same each time that the transcript is read.
        let id = derived_id(&format!("{PROGRAM}/{number}/{}", String::from_utf8_lossy(line)));
        (results.id, entry.id) = (Some(format!("{id}/results")), Some(id.to_string()));
        Ok(vec![results, entry])
    }

    /// Returns what the user wrote, without what Cursor adds; `None` if nothing is left.
    fn parse_prompt(&mut self, text: &str) -> Option<String> {
        let (before, query) = match split_tag(text, "user_query") {
            Some((before, query)) => (before, Some(query)),
            None => (text, None),
        };
        let time = split_tag(before, "timestamp").and_then(|(_, time)| parse_time(time));
        self.at = time.or(self.at);
        self.started_at = self.started_at.or(time);
        let rest = || match time {
            Some(_) => text.split_once("</timestamp>").map_or(text, |(_, rest)| rest),
            None => text,
        };
        let said = query.unwrap_or_else(rest).trim();
        (!said.is_empty()).then(|| said.to_owned())
    }

    /// Parses a result. Without an id, it is that of the oldest call.
    fn parse_result(&mut self, output: ToolOutput<'_>) -> CallResult {
        let call = self.open_calls.iter().position(|(id, _)| output.call.is_empty() || *id == output.call);
        let (id, name) = match call.map(|at| self.open_calls.remove(at)) {
            Some((id, name)) => (id, Some(name)),
            None => (output.call.into_owned(), None),
        };
        let attachments = (1..).zip(output.files).map(|(number, file)| file.into_attachment(number)).collect();
        let others = output.others.into_iter().map(|raw| minify_value(raw).get().to_owned());
        let texts = (!output.text.is_empty()).then_some(output.text).into_iter().chain(others);
        let text = texts.collect::<Vec<_>>().join("\n");
        CallResult { call: id, name, text, attachments, is_error: output.is_error, at: self.at }
    }
}

fn parse_role(fields: &RawObject<'_>) -> Option<Role> {
    match fields.get_text("role")?.as_ref() {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => None,
    }
}

/// Returns the text of a reply without the mark of a thought; `None` if nothing is left.
fn parse_reply(text: &str) -> Option<String> {
    let said = text.trim_end().strip_suffix(REDACTED).map_or(text, str::trim_end);
    (!said.trim().is_empty()).then(|| said.to_owned())
}

/// Returns what is before a tag, and what is in it.
fn split_tag<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (before, rest) = text.split_once(&format!("<{name}>"))?;
    Some((before, rest.rsplit_once(&format!("</{name}>"))?.0))
}

/// Parses `Tuesday, Sep 8, 2026, 3:04 PM (UTC-7)`.
fn parse_time(text: &str) -> Option<Timestamp> {
    let (time, zone) = text.trim().strip_suffix(')')?.split_once(" (UTC")?;
    let (_, date) = time.split_once(", ")?;
    let time = DateTime::strptime("%b %d, %Y, %I:%M %p", date).ok()?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i32 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes: i32 = minutes.parse().ok()?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let seconds = hours.checked_mul(3600)?.checked_add(sign * minutes.checked_mul(60)?)?;
    Offset::from_seconds(seconds).ok()?.to_timestamp(time).ok()
}
