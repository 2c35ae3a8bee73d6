//! Imports chat messages in the form of OpenAI's or Anthropic's API: a JSON list, an object with `messages` (the body
//! of a request), or JSONL of either messages or such objects. Cline and Roo Code store such lists, droid such
//! lines.

mod anthropic_messages;
mod content;
mod entry;
mod message;
mod session_grouping;

use std::io::{BufRead, Seek};

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::error::ImportError;
use super::json_splitter::{ScanError, Scanner};
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::writer::SessionWriter;
pub(super) use entry::is_entry;
pub(super) use message::parse_message;
use session_grouping::ConversationReader;

/// Imports every conversation of the file.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let first = Scanner::new(&mut *source).peek()?;
    source.rewind()?;
    if first == Some(b'[') {
        return import_list(source, writer);
    }
    let (whole, too_long) = {
        let mut lines = LineReader::new(&mut *source);
        let line = lines.next()?;
        let whole = line.as_ref().and_then(|line| line.bytes);
        let whole = whole.is_some_and(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok());
        (whole, line.is_some_and(|line| line.bytes.is_none()))
    };
    source.rewind()?;
    if !whole && first == Some(b'{') {
        let before = writer.message_count();
        let system = find_system_prompt(source)?;
        source.rewind()?;
        let broken = import_object(source, system.as_deref(), writer)?;
        match broken {
            Some((line, reason)) if writer.message_count() > before => {
                writer.skip(line, reason);
                return Ok(());
            }
            // The first of several lines may exceed the limit. `source` is now at its end.
            None if too_long && writer.message_count() > before => return import_jsonl(source, writer),
            None if !too_long => return Ok(()),
            // This is not a single object with messages: perhaps only the first line is broken or too long.
            Some(_) | None => source.rewind()?,
        }
    }
    import_jsonl(source, writer)
}

fn import_list(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut conversation = ConversationReader::new(writer);
    let mut entries = 0;
    let walked = Scanner::new(source).for_each_entry(|entry| {
        entries = entry.number;
        conversation.report_progress(entry.position);
        conversation.add_entry(entry.number, entry.bytes.ok_or(LINE_TOO_LONG))
    });
    conversation.end_session()?;
    if let Err(error) = walked {
        let (line, reason) = error.into_line_and_reason()?;
        if writer.message_count() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(entries + 1, reason);
    }
    Ok(())
}

/// Finds the `system` field of an object, which may be after the messages but is imported before them.
fn find_system_prompt(source: &mut impl BufRead) -> Result<Option<Box<RawValue>>, ImportError> {
    let (mut value, mut found) = (Vec::new(), None);
    let walked = Scanner::new(source).for_each_field(|scanner, key| {
        if key != "system" && key != "system_prompt" {
            return scanner.read_value(None).map(drop);
        }
        if scanner.read_value(Some(&mut value))? {
            found = serde_json::from_slice(&value).ok();
        }
        Ok(())
    });
    // An error here occurs again when the messages are read, which reports it.
    if let Err(error) = walked {
        error.into_line_and_reason()?;
    }
    Ok(found)
}

/// Imports an object over several lines. Returns the line and the reason if it is broken.
fn import_object(
    source: &mut impl BufRead,
    system: Option<&RawValue>,
    writer: &mut SessionWriter<'_>,
) -> Result<Option<(u64, String)>, ImportError> {
    let mut conversation = ConversationReader::new(writer);
    let mut value = Vec::new();
    let walked = Scanner::new(source).for_each_field(|scanner, key| match key {
        "messages" if scanner.peek()? == Some(b'[') => {
            if let Some(system) = system {
                conversation.add_system_prompt(system)?;
            }
            scanner.for_each_entry(|entry| {
                conversation.report_progress(entry.position);
                conversation.add_entry(entry.number, entry.bytes.ok_or(LINE_TOO_LONG))
            })
        }
        "model" => {
            scanner.read_value(Some(&mut value))?;
            conversation.set_model(serde_json::from_slice(&value).ok());
            Ok(())
        }
        _ => scanner.read_value(None).map(drop),
    });
    conversation.end_session()?;
    Ok(walked.err().map(ScanError::into_line_and_reason).transpose()?)
}

fn import_jsonl(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut conversation = ConversationReader::new(writer);
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next()? {
        conversation.report_progress(line.offset);
        conversation.add_entry(line.number, line.bytes.ok_or(LINE_TOO_LONG))?;
    }
    conversation.end_session()?;
    Ok(())
}

#[cfg(test)]
mod tests;
