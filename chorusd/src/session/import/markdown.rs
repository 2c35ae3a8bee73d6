//! Markdown as an export of Chorus writes it. Headings part the messages; what the heading does not say stands in a
//! comment below it, calls and results in fenced blocks.

mod reader;

use std::io::{BufRead, Read as _};

use chorus_proto::NewMessage;

use super::error::ImportError;
use super::lines::{LONGEST, TOO_LONG};
use super::sink::About;
use super::writer::Writer;
use super::{chorus, values};
use crate::session::markdown::{Heading, SESSION, commented};
use reader::Reader;

const BOM: &str = "\u{feff}";

/// Reads one conversation.
pub(super) fn import(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut about = About::default();
    let mut open: Option<Reader> = None;
    let (mut number, mut position, mut bytes, mut windows) = (0_u64, 0_u64, Vec::new(), false);
    loop {
        bytes.clear();
        let read = source.by_ref().take(LONGEST).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            break;
        }
        number += 1;
        position += read;
        writer.sink.progress(position);
        let Ok(text) = std::str::from_utf8(&bytes) else {
            writer.skip(number, "not valid UTF-8");
            continue;
        };
        let line = text.strip_suffix('\n').unwrap_or(text);
        // Whoever turned the first line's end into CRLF turned all of them.
        windows = if number == 1 { line.ends_with('\r') } else { windows };
        let line = if windows { line.strip_suffix('\r').unwrap_or(line) } else { line };
        let line = if number == 1 { line.trim_start_matches(BOM) } else { line };
        let in_block = open.as_ref().is_some_and(Reader::in_block);
        match Heading::parse(line).filter(|_| !in_block) {
            Some(heading) => {
                finish(open.take(), writer)?;
                open = Some(Reader::new(heading, number));
            }
            None => match &mut open {
                Some(reader) => reader.line(line),
                None => facts(line, &mut about),
            },
        }
    }
    finish(open, writer)?;
    writer.end(about)?;
    Ok(())
}

/// A line before the first message.
fn facts(line: &str, about: &mut About) {
    if let Some(json) = commented(SESSION, line) {
        *about = chorus::about(json.as_bytes()).unwrap_or_default();
    } else if let Some(title) = line.strip_prefix("# ")
        && about.id.is_none()
        && about.description.is_none()
    {
        about.description = Some(title.trim().to_owned());
    }
}

fn finish(reader: Option<Reader>, writer: &mut Writer<'_>) -> std::io::Result<()> {
    let Some(reader) = reader else { return Ok(()) };
    let number = reader.number;
    let read = reader.finish();
    for (line, reason) in read.skipped {
        writer.skip(line, reason);
    }
    let Some(message) = read.message else {
        writer.skip(number, TOO_LONG);
        return Ok(());
    };
    let message = NewMessage { source: message.source.or_else(|| Some(values::source("markdown"))), ..message };
    let message = message.complete(&mut *writer.new_id, writer.now);
    writer.message(&message)
}

#[cfg(test)]
mod tests;
