//! Imports sessions of goose: JSONL whose first line has the session's metadata, or one JSON object that contains the
//! messages.

mod block;
mod message;

use std::io::{BufRead, Seek};

use jiff::Timestamp;

use super::error::ImportError;
use super::imported_call::{ImportedCall, call_key};
use super::json_splitter::Scanner;
use super::json_values::{parse_time_text, parse_timestamp};
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use message::MessageReader;

/// Returns whether an object is a line of a session file, or an exported session.
pub(super) fn is_session(fields: &RawObject<'_>) -> bool {
    if fields.has("role") {
        return fields.has("created") && fields.get("content").is_some_and(block::is_goose_content);
    }
    fields.has("working_dir") && ["conversation", "description", "message_count"].iter().any(|key| fields.has(key))
}

/// Imports one session.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let (first_is_a_line, too_long) = {
        let mut lines = LineReader::new(&mut *source);
        let first = lines.next()?;
        let too_long = first.as_ref().is_some_and(|line| line.bytes.is_none());
        let first = first.and_then(|line| line.bytes).map(RawObject::from_bytes);
        let is_line = matches!(first, Some(Ok(fields)) if !fields.has("conversation") && !fields.has("messages"));
        (is_line, too_long)
    };
    source.rewind()?;
    if first_is_a_line {
        return import_jsonl(source, writer);
    }
    let before = writer.message_count();
    let broken = import_object(source, writer)?;
    match broken {
        Some((line, reason)) if writer.message_count() > before => writer.skip(line, reason),
        None if writer.message_count() > before || !too_long => {}
        // This is not a single object with messages: perhaps only the first line is broken or too long.
        Some(_) | None => {
            source.rewind()?;
            return import_jsonl(source, writer);
        }
    }
    Ok(())
}

fn import_jsonl(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = SessionMetadata::default();
    let mut messages = MessageReader::default();
    let calls_before = writer.call_count();
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset);
        let number = line.number;
        match line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes) {
            Ok(fields) if fields.has("role") || fields.has("content") => messages.add_entry(number, &fields, writer)?,
            Ok(fields) => fields.iter().for_each(|(key, value)| about.set(key, value.get())),
            Err(reason) => writer.skip(number, reason),
        }
    }
    about.report_totals(calls_before, writer);
    writer.end_session(about.finish())?;
    Ok(())
}

/// Imports a single object. Returns the line and the reason if it is broken.
fn import_object(
    source: &mut impl BufRead,
    writer: &mut SessionWriter<'_>,
) -> Result<Option<(u64, String)>, ImportError> {
    let mut about = SessionMetadata::default();
    let mut messages = MessageReader::default();
    let calls_before = writer.call_count();
    let mut value = Vec::new();
    let walked = Scanner::new(source).for_each_field(|scanner, key| match key {
        "conversation" | "messages" if scanner.peek()? == Some(b'[') => scanner.for_each_entry(|entry| {
            writer.sink.report_progress(entry.position);
            match entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes) {
                Ok(fields) => messages.add_entry(entry.number, &fields, writer),
                Err(reason) => {
                    writer.skip(entry.number, reason);
                    Ok(())
                }
            }
        }),
        key => {
            if scanner.read_value(Some(&mut value))? {
                about.set(key, std::str::from_utf8(&value).unwrap_or_default());
            }
            Ok(())
        }
    });
    let broken = walked.err().map(super::json_splitter::ScanError::into_line_and_reason).transpose()?;
    about.report_totals(calls_before, writer);
    writer.end_session(about.finish())?;
    Ok(broken)
}

/// Metadata of a session.
#[derive(Debug, Default)]
struct SessionMetadata {
    about: ImportedMetadata,
    /// The session that started this one, which is a subagent's.
    parent: Option<String>,
    parent_started_at: Option<Timestamp>,
    /// What all calls used together, for versions whose messages do not say it. The input contains what was cached.
    totals: ImportedCall,
}

impl SessionMetadata {
    /// Sets one field.
    fn set(&mut self, key: &str, value: &str) {
        let text = || serde_json::from_str::<String>(value).ok().filter(|text| !text.trim().is_empty());
        let time = || {
            let written = text().and_then(|text| parse_time_text(&text.replacen(' ', "T", 1)));
            written.or_else(|| serde_json::from_str(value).ok().and_then(parse_timestamp))
        };
        let about = &mut self.about;
        match key {
            "description" => about.description = text().or(about.description.take()),
            "name" => about.description = about.description.take().or_else(text),
            // In JSONL files the id is only in the name of the file.
            "id" | "session_id" => about.conversation = text().or(about.conversation.take()),
            "working_dir" => about.project = text(),
            "created_at" => about.started_at = time(),
            "updated_at" => about.saved_at = time(),
            "accumulated_input_tokens" => self.totals.input_tokens = value.parse().unwrap_or(0),
            "accumulated_output_tokens" => self.totals.output_tokens = value.parse().unwrap_or(0),
            "accumulated_cache_read_tokens" => self.totals.cache_read_tokens = value.parse().unwrap_or(0),
            "accumulated_cache_write_tokens" => self.totals.cache_write_tokens = value.parse().unwrap_or(0),
            "parent_session_id" => self.parent = text(),
            "parent_created_at" => self.parent_started_at = time(),
            "model_config" => {
                about.model = RawObject::from_bytes(value.as_bytes())
                    .ok()
                    .and_then(|config| config.get_text("model_name").map(Into::into));
            }
            _ => {}
        }
    }

    /// Reports the totals of a session as one call at its end, unless its messages told of calls.
    fn report_totals(&self, calls_before: u64, writer: &mut SessionWriter<'_>) {
        let has_tokens = self.totals.input_tokens > 0 || self.totals.output_tokens > 0;
        if writer.call_count() > calls_before || !has_tokens {
            return;
        }
        let about = &self.about;
        let id = about.conversation.as_deref().unwrap_or_default();
        let started_at = about.started_at.map_or(0, Timestamp::as_nanosecond);
        let call = ImportedCall {
            key: call_key(&[b"goose", id.as_bytes(), &started_at.to_le_bytes()]),
            at: about.saved_at.or(about.started_at).unwrap_or(writer.now),
            ..self.totals.clone()
        };
        writer.report_calls(&mut vec![call]);
    }

    fn finish(self) -> ImportedMetadata {
        let mut about = self.about;
        about.conversation = about.conversation.map(|id| unique_id(id, about.started_at));
        if let (Some(parent), Some(own)) =
            (self.parent, about.conversation.take_if(|_| self.parent_started_at.is_some()))
        {
            about.conversation = Some(format!("{}/{own}", unique_id(parent, self.parent_started_at)));
            about.side_chain = true;
            about.tags = vec!["side-chain".into()];
        }
        about
    }
}

/// Returns an id that no other machine gives: `<date>_<number of the session on that day>` is made one by the time.
fn unique_id(id: String, started_at: Option<Timestamp>) -> String {
    let number = id.split_once('_').filter(|(date, _)| date.len() == 8).map_or("", |(_, number)| number);
    match started_at {
        Some(at) if !number.is_empty() && number.len() < 6 => format!("{id}@{}", at.as_second()),
        _ => id,
    }
}

#[cfg(test)]
mod tests;
