//! Imports conversations with the Gemini app from Google Takeout: records of My Activity, a prompt with its answer each, or one
//! file for each conversation.

mod activity;
mod conversation;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::line_reader::LINE_TOO_LONG;
use super::object_list::{for_each_object, report_end};
use super::raw_object::RawObject;
use super::writer::SessionWriter;
use activity::ActivityReader;
pub(super) use activity::is_record;

const PROGRAM: &str = "gemini-apps";

/// Imports all conversations.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let is_list = Scanner::new(&mut *source).peek()? == Some(b'[');
    source.rewind()?;
    if !is_list {
        return for_each_object(source, writer, conversation::import_conversation);
    }
    let mut records = ActivityReader::default();
    let mut count = 0;
    let walked = Scanner::new(source).for_each_entry(|entry| {
        count = entry.number;
        writer.sink.report_progress(entry.position);
        let parsed = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        match parsed.and_then(|fields| records.parse(&fields)) {
            Ok(Some(record)) => records.add(record, writer),
            Ok(None) => Ok(()),
            Err(reason) => {
                writer.skip(entry.number, reason);
                Ok(())
            }
        }
    });
    records.finish(writer)?;
    report_end(walked, count + 1, writer)
}

#[cfg(test)]
mod tests;
