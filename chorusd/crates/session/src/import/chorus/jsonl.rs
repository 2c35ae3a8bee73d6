//! Imports the messages of a session as JSONL, which an export writes.

use std::io::{self, BufRead};

use chorus_proto::Message;
use jiff::Timestamp;

use super::super::error::ImportError;
use super::super::line_reader::{LINE_TOO_LONG, LineReader};
use super::super::raw_object::RawObject;
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::header::HeaderParser;
use super::message;

/// Fields that no message of Chorus has. A line with one of them was written by another program.
const FOREIGN_FIELDS: [&str; 14] = [
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "created",
    "created_at",
    "create_time",
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "mapping",
    "payload",
];

/// Returns whether a line is a message that Chorus wrote, possibly with fields of a later version.
pub(in super::super) fn is_message(line: &[u8], fields: &RawObject<'_>) -> bool {
    fields.get_text("id").is_some()
        && fields.get_text("content").is_some()
        && fields.get_parsed::<Timestamp>("timestamp").is_some()
        && fields.iter().all(|(key, _)| !FOREIGN_FIELDS.contains(&key))
        && serde_json::from_slice::<Message>(line).is_ok()
}

/// Returns whether the file consists of lines: its first line is an object without messages.
pub(super) fn is_message_file(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = LineReader::new(source);
    let first = lines.next()?.and_then(|line| line.bytes).map(RawObject::from_bytes);
    Ok(matches!(first, Some(Ok(fields)) if !fields.has("messages")))
}

/// Returns whether the first line exceeds the limit.
pub(super) fn is_first_line_too_long(source: &mut impl BufRead) -> io::Result<bool> {
    Ok(LineReader::new(source).next()?.is_some_and(|line| line.bytes.is_none()))
}

/// Returns whether any line is a message, even if the first one is not.
pub(super) fn has_any_message(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next()? {
        if line.bytes.and_then(|bytes| RawObject::from_bytes(bytes).ok()).is_some_and(|fields| fields.has("role")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Imports the lines. A line that is not a message may be the header.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ImportedMetadata::default();
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset);
        let number = line.number;
        let read = line
            .bytes
            .ok_or_else(|| LINE_TOO_LONG.to_owned())
            .and_then(|bytes| Ok((bytes, RawObject::from_bytes(bytes)?)));
        let (bytes, fields) = match read {
            Ok(read) => read,
            Err(reason) => {
                writer.skip(number, reason);
                continue;
            }
        };
        if fields.has("session_id") && !fields.has("role") {
            let mut header = HeaderParser::default();
            fields.iter().for_each(|(key, value)| header.set_field(key, value.get().as_bytes()));
            about = header.into_metadata();
            continue;
        }
        match message::parse(bytes, writer.now, writer.new_id) {
            Ok((message, json)) => writer.write_serialized(&message, json.as_bytes())?,
            Err(reason) => writer.skip(number, reason),
        }
    }
    writer.end_session(about)?;
    Ok(())
}
