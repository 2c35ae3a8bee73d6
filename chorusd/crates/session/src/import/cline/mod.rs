//! Imports tasks of Cline, Roo Code and Kilo Code. The extensions keep each in a directory with several files, which
//! chorusctl puts into one document; Cline's command line keeps a session in one file, which is taken as it is.
//!
//! The document: `cline` with what describes the task, `ui_messages` with what the person saw, and `transcript` with the
//! messages of the API.

mod message;
mod requests;
mod task;
mod ui_messages;

use std::io::{BufRead, Seek};

use serde_json::value::RawValue;

use super::error::ImportError;
use super::json_splitter::{ScanError, Scanner};
use super::line_reader::LINE_TOO_LONG;
use super::object_list::report_end;
use super::raw_object::RawObject;
use super::writer::SessionWriter;
use task::TaskReader;
pub(super) use ui_messages::is_ui_message;

/// Imports a task.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut task = TaskReader::default();
    let is_list = Scanner::new(&mut *source).peek()? == Some(b'[');
    source.rewind()?;
    let mut scanner = Scanner::new(source);
    let walked = if is_list {
        read_entries(&mut scanner, &mut task, writer)
    } else {
        read_fields(&mut scanner, &mut task, writer)
    };
    if writer.message_count() == 0 {
        task.write_ui_messages(writer)?;
    }
    report_end(walked, task.next_entry(), writer)?;
    writer.end_session(task.finish())?;
    Ok(())
}

/// Reads the fields of the document, or of a file of the command line.
fn read_fields<R: BufRead>(
    scanner: &mut Scanner<R>,
    task: &mut TaskReader,
    writer: &mut SessionWriter<'_>,
) -> Result<(), ScanError> {
    let mut value = Vec::new();
    scanner.for_each_field(|scanner, key| match (key, scanner.peek()?) {
        ("ui_messages" | "messages" | "transcript", Some(b'[')) => read_entries(scanner, task, writer),
        ("transcript", Some(b'{')) => read_fields(scanner, task, writer),
        (key, _) => {
            if scanner.read_value(Some(&mut value))?
                && let Ok(value) = serde_json::from_slice::<&RawValue>(&value)
            {
                task.set_field(key, value);
            }
            Ok(())
        }
    })
}

/// Reads messages of the transcript, or what the person saw.
fn read_entries<R: BufRead>(
    scanner: &mut Scanner<R>,
    task: &mut TaskReader,
    writer: &mut SessionWriter<'_>,
) -> Result<(), ScanError> {
    scanner.for_each_entry(|entry| {
        writer.sink.report_progress(entry.position);
        let number = entry.number;
        let parsed = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        let entries = parsed.and_then(|fields| match is_ui_message(&fields) {
            true => {
                task.add_ui_message(&fields);
                Ok(Vec::new())
            }
            false => task.parse_message(number, &fields),
        });
        match entries {
            Ok(entries) => entries.into_iter().try_for_each(|entry| entry.write(writer)),
            Err(reason) => {
                writer.skip(number, reason);
                Ok(())
            }
        }
    })
}

#[cfg(test)]
mod tests;
