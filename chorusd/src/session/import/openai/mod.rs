//! Chat messages in the shape of OpenAI's API or of Anthropic's: a JSON list, an object with `messages` (the body of a request), or
//! JSONL of either messages or such objects. Cline and Roo Code keep such a list, Cursor and droid such lines.

mod blocks;
mod content;
mod conversation;
mod entry;
mod message;

use std::io::{BufRead, Seek};

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::error::ImportError;
use super::lines::{Lines, TOO_LONG};
use super::scan::{ScanError, Scanner};
use super::writer::Writer;
use conversation::Conversation;
pub(super) use entry::is_entry;
pub(super) use message::message;

/// Reads every conversation of the file.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let first = Scanner::new(&mut *source).peek()?;
    source.rewind()?;
    if first == Some(b'[') {
        return list(source, writer);
    }
    let (whole, too_long) = {
        let mut lines = Lines::new(&mut *source);
        let line = lines.next()?;
        let whole = line.as_ref().and_then(|line| line.bytes);
        let whole = whole.is_some_and(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok());
        (whole, line.is_some_and(|line| line.bytes.is_none()))
    };
    source.rewind()?;
    if !whole && first == Some(b'{') {
        let before = writer.written();
        let system = system(source)?;
        source.rewind()?;
        let broken = object(source, system.as_deref(), writer)?;
        match broken {
            Some((line, reason)) if writer.written() > before => {
                writer.skip(line, reason);
                return Ok(());
            }
            // The first of many lines may be as long as that; the next reading begins with its end.
            None if too_long && writer.written() > before => return jsonl(source, writer),
            None if !too_long => return Ok(()),
            // Neither one object nor messages in it: perhaps only the first line is broken, or too long.
            Some(_) | None => source.rewind()?,
        }
    }
    jsonl(source, writer)
}

fn list(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut conversation = Conversation::new(writer);
    let mut entries = 0;
    let walked = Scanner::new(source).entries(|entry| {
        entries = entry.number;
        conversation.progress(entry.position);
        conversation.entry(entry.number, entry.bytes.ok_or(TOO_LONG))
    });
    conversation.end()?;
    if let Err(error) = walked {
        let (line, reason) = error.place()?;
        if writer.written() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(entries + 1, reason);
    }
    Ok(())
}

/// The `system` of an object: it may stand behind the messages, and comes before them.
fn system(source: &mut impl BufRead) -> Result<Option<Box<RawValue>>, ImportError> {
    let (mut value, mut found) = (Vec::new(), None);
    let walked = Scanner::new(source).fields(|scanner, key| {
        if key != "system" && key != "system_prompt" {
            return scanner.value(None).map(drop);
        }
        if scanner.value(Some(&mut value))? {
            found = serde_json::from_slice(&value).ok();
        }
        Ok(())
    });
    // What breaks off here breaks off again when the messages are read, where it is told.
    if let Err(error) = walked {
        error.place()?;
    }
    Ok(found)
}

/// One object over many lines; the line and the reason, where it breaks off.
fn object(
    source: &mut impl BufRead,
    system: Option<&RawValue>,
    writer: &mut Writer<'_>,
) -> Result<Option<(u64, String)>, ImportError> {
    let mut conversation = Conversation::new(writer);
    let mut value = Vec::new();
    let walked = Scanner::new(source).fields(|scanner, key| match key {
        "messages" if scanner.peek()? == Some(b'[') => {
            if let Some(system) = system {
                conversation.system(system)?;
            }
            scanner.entries(|entry| {
                conversation.progress(entry.position);
                conversation.entry(entry.number, entry.bytes.ok_or(TOO_LONG))
            })
        }
        "model" => {
            scanner.value(Some(&mut value))?;
            conversation.model(serde_json::from_slice(&value).ok());
            Ok(())
        }
        _ => scanner.value(None).map(drop),
    });
    conversation.end()?;
    Ok(walked.err().map(ScanError::place).transpose()?)
}

fn jsonl(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut conversation = Conversation::new(writer);
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        conversation.progress(line.offset);
        conversation.entry(line.number, line.bytes.ok_or(TOO_LONG))?;
    }
    conversation.end()?;
    Ok(())
}

#[cfg(test)]
mod tests;
