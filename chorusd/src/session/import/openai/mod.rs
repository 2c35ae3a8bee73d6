//! OpenAI chat messages: a JSON list, an object with `messages`, or JSONL of either messages or such objects.

mod content;
mod conversation;
mod message;

use std::io::{BufRead, Seek};

use serde::de::IgnoredAny;

use super::error::ImportError;
use super::lines::{Lines, TOO_LONG};
use super::scan::{ScanError, Scanner};
use super::writer::Writer;
use conversation::Conversation;
pub(super) use message::message;

/// Reads every conversation of the file.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let first = Scanner::new(&mut *source).peek()?;
    source.rewind()?;
    if first == Some(b'[') {
        return list(source, writer);
    }
    let first_line_is_whole = {
        let mut lines = Lines::new(&mut *source);
        let line = lines.next()?.and_then(|line| line.bytes);
        line.is_some_and(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok())
    };
    source.rewind()?;
    if !first_line_is_whole && first == Some(b'{') {
        let before = writer.written();
        let broken = object(source, writer)?;
        match broken {
            None => return Ok(()),
            Some((line, reason)) if writer.written() > before => {
                writer.skip(line, reason);
                return Ok(());
            }
            // Neither one object nor messages in it: perhaps only the first line is broken.
            Some(_) => source.rewind()?,
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

/// One object over many lines; the line and the reason, where it breaks off.
fn object(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<Option<(u64, String)>, ImportError> {
    let mut conversation = Conversation::new(writer);
    let mut value = Vec::new();
    let walked = Scanner::new(source).fields(|scanner, key| match key {
        "messages" if scanner.peek()? == Some(b'[') => scanner.entries(|entry| {
            conversation.progress(entry.position);
            conversation.entry(entry.number, entry.bytes.ok_or(TOO_LONG))
        }),
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
