//! Imports ChatGPT's export: a list of conversations, each a tree of messages. One path through the tree is the
//! conversation.
//!
//! Messages of other branches (regenerated or edited) are kept in `provider` of the message that they follow, and
//! reported.

mod content;
mod conversation;
mod message;
mod tree;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::json_splitter::{ScanError, Scanner};
use super::line_reader::LINE_TOO_LONG;
use super::raw_object::RawObject;
use super::writer::SessionWriter;

/// Returns whether an object is a conversation of an export.
pub(super) fn is_conversation(fields: &RawObject<'_>) -> bool {
    fields.get("mapping").is_some_and(|mapping| mapping.get().starts_with('{')) && !fields.has("role")
}

/// Imports every conversation of the file: a list of them, a single one, or one on each line.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let listed = Scanner::new(&mut *source).peek()? == Some(b'[');
    source.rewind()?;
    let mut scanner = Scanner::new(&mut *source);
    let mut entries = 0;
    let walked = if listed {
        scanner.for_each_entry(|entry| {
            entries = entry.number;
            writer.sink.report_progress(entry.position);
            conversation::import_conversation(entry.number, entry.bytes.ok_or(LINE_TOO_LONG), writer)
        })
    } else {
        import_concatenated(&mut scanner, &mut entries, writer)
    };
    if let Err(error) = walked {
        let (line, reason) = error.into_line_and_reason()?;
        if writer.message_count() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(entries + 1, reason);
    }
    Ok(())
}

fn import_concatenated<R: BufRead>(
    scanner: &mut Scanner<R>,
    entries: &mut u64,
    writer: &mut SessionWriter<'_>,
) -> Result<(), ScanError> {
    let mut value = Vec::new();
    while scanner.peek()?.is_some() {
        let fits = scanner.read_value(Some(&mut value))?;
        *entries += 1;
        writer.sink.report_progress(scanner.position());
        conversation::import_conversation(*entries, if fits { Ok(&value) } else { Err(LINE_TOO_LONG) }, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
