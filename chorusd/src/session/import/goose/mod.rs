//! Sessions of goose: JSONL whose first line says what the session is, or one JSON object with the messages in it.

mod block;
mod message;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::fields::Fields;
use super::lines::{Lines, TOO_LONG};
use super::scan::Scanner;
use super::sink::About;
use super::values::timestamp;
use super::writer::Writer;
use message::Messages;

/// Whether a line is one of a session file, or the object of an export.
pub(super) fn is_session(fields: &Fields<'_>) -> bool {
    if fields.has("role") {
        return fields.has("created") && fields.get("content").is_some_and(block::is_ours);
    }
    fields.has("working_dir") && ["conversation", "description", "message_count"].iter().any(|key| fields.has(key))
}

/// Reads one session.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let (first_is_a_line, too_long) = {
        let mut lines = Lines::new(&mut *source);
        let first = lines.next()?;
        let too_long = first.as_ref().is_some_and(|line| line.bytes.is_none());
        let first = first.and_then(|line| line.bytes).map(Fields::read);
        let is_line = matches!(first, Some(Ok(fields)) if !fields.has("conversation") && !fields.has("messages"));
        (is_line, too_long)
    };
    source.rewind()?;
    if first_is_a_line {
        return jsonl(source, writer);
    }
    let before = writer.written();
    let broken = object(source, writer)?;
    match broken {
        Some((line, reason)) if writer.written() > before => writer.skip(line, reason),
        None if writer.written() > before || !too_long => {}
        // Neither one object nor messages in it: perhaps only the first line is broken, or too long.
        Some(_) | None => {
            source.rewind()?;
            return jsonl(source, writer);
        }
    }
    Ok(())
}

fn jsonl(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut about = About::default();
    let mut messages = Messages::default();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.progress(line.offset);
        let number = line.number;
        match line.bytes.ok_or_else(|| TOO_LONG.to_owned()).and_then(Fields::read) {
            Ok(fields) if fields.has("role") || fields.has("content") => messages.take(number, &fields, writer)?,
            Ok(fields) => fields.iter().for_each(|(key, value)| tell(&mut about, key, value.get())),
            Err(reason) => writer.skip(number, reason),
        }
    }
    writer.end(about)?;
    Ok(())
}

/// One object; the line and the reason, where it breaks off.
fn object(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<Option<(u64, String)>, ImportError> {
    let mut about = About::default();
    let mut messages = Messages::default();
    let mut value = Vec::new();
    let walked = Scanner::new(source).fields(|scanner, key| match key {
        "conversation" | "messages" if scanner.peek()? == Some(b'[') => scanner.entries(|entry| {
            writer.sink.progress(entry.position);
            match entry.bytes.ok_or_else(|| TOO_LONG.to_owned()).and_then(Fields::read) {
                Ok(fields) => messages.take(entry.number, &fields, writer),
                Err(reason) => {
                    writer.skip(entry.number, reason);
                    Ok(())
                }
            }
        }),
        key => {
            if scanner.value(Some(&mut value))? {
                tell(&mut about, key, std::str::from_utf8(&value).unwrap_or_default());
            }
            Ok(())
        }
    });
    let broken = walked.err().map(super::scan::ScanError::place).transpose()?;
    writer.end(about)?;
    Ok(broken)
}

/// One field of what the session says of itself.
fn tell(about: &mut About, key: &str, value: &str) {
    let text = || serde_json::from_str::<String>(value).ok().filter(|text| !text.trim().is_empty());
    let time = || serde_json::from_str(value).ok().and_then(timestamp);
    match key {
        "description" => about.description = text().or(about.description.take()),
        "name" => about.description = about.description.take().or_else(text),
        "created_at" => about.started_at = time(),
        "updated_at" => about.saved_at = time(),
        "model_config" => {
            about.model =
                Fields::read(value.as_bytes()).ok().and_then(|config| config.text("model_name").map(Into::into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
