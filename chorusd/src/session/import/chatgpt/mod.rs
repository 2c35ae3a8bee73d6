//! ChatGPT's export: a list of conversations, each a tree of messages of which one path is the conversation.
//!
//! What was regenerated or edited away hangs beside that path. It is kept with the message it follows, and told.

mod content;
mod conversation;
mod message;
mod tree;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::fields::Fields;
use super::lines::TOO_LONG;
use super::scan::{ScanError, Scanner};
use super::writer::Writer;

/// Whether an object is a conversation of an export.
pub(super) fn is_conversation(fields: &Fields<'_>) -> bool {
    fields.get("mapping").is_some_and(|mapping| mapping.get().starts_with('{')) && !fields.has("role")
}

/// Reads every conversation of the file: a list of them, one alone, or one a line.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let listed = Scanner::new(&mut *source).peek()? == Some(b'[');
    source.rewind()?;
    let mut scanner = Scanner::new(&mut *source);
    let mut entries = 0;
    let walked = if listed {
        scanner.entries(|entry| {
            entries = entry.number;
            writer.sink.progress(entry.position);
            conversation::read(entry.number, entry.bytes.ok_or(TOO_LONG), writer)
        })
    } else {
        in_a_row(&mut scanner, &mut entries, writer)
    };
    if let Err(error) = walked {
        let (line, reason) = error.place()?;
        if writer.written() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(entries + 1, reason);
    }
    Ok(())
}

fn in_a_row<R: BufRead>(scanner: &mut Scanner<R>, entries: &mut u64, writer: &mut Writer<'_>) -> Result<(), ScanError> {
    let mut value = Vec::new();
    while scanner.peek()?.is_some() {
        let fits = scanner.value(Some(&mut value))?;
        *entries += 1;
        writer.sink.progress(scanner.position());
        conversation::read(*entries, if fits { Ok(&value) } else { Err(TOO_LONG) }, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
