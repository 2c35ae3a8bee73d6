//! The messages of a session, one a line, as an export writes them.

use std::io::{self, BufRead};

use chorus_proto::Message;
use jiff::Timestamp;

use super::super::error::ImportError;
use super::super::fields::Fields;
use super::super::lines::{Lines, TOO_LONG};
use super::super::sink::About;
use super::super::writer::Writer;
use super::header::Header;
use super::message;

/// What no message of Chorus says: a line with one of these is another program's, whatever else it has.
const FOREIGN: [&str; 14] = [
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

/// Whether a line is a message as Chorus writes it, perhaps with fields of a later version.
pub(in super::super) fn is_message(line: &[u8], fields: &Fields<'_>) -> bool {
    fields.text("id").is_some()
        && fields.text("content").is_some()
        && fields.parse::<Timestamp>("timestamp").is_some()
        && fields.iter().all(|(key, _)| !FOREIGN.contains(&key))
        && serde_json::from_slice::<Message>(line).is_ok()
}

/// Whether the file is one of lines: its first is an object with no messages in it.
pub(super) fn are_messages(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = Lines::new(source);
    let first = lines.next()?.and_then(|line| line.bytes).map(Fields::read);
    Ok(matches!(first, Some(Ok(fields)) if !fields.has("messages")))
}

/// Whether the first line is too long to be read as one.
pub(super) fn begin_too_long(source: &mut impl BufRead) -> io::Result<bool> {
    Ok(Lines::new(source).next()?.is_some_and(|line| line.bytes.is_none()))
}

/// Whether any line is a message, whatever the first is.
pub(super) fn have_messages(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        if line.bytes.and_then(|bytes| Fields::read(bytes).ok()).is_some_and(|fields| fields.has("role")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the lines; one that is no message may be the header.
pub(super) fn import(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut about = About::default();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.progress(line.offset);
        let number = line.number;
        let read = line.bytes.ok_or_else(|| TOO_LONG.to_owned()).and_then(|bytes| Ok((bytes, Fields::read(bytes)?)));
        let (bytes, fields) = match read {
            Ok(read) => read,
            Err(reason) => {
                writer.skip(number, reason);
                continue;
            }
        };
        if fields.has("session_id") && !fields.has("role") {
            let mut header = Header::default();
            fields.iter().for_each(|(key, value)| header.take(key, value.get().as_bytes()));
            about = header.about();
            continue;
        }
        match message::read(bytes, writer.now, writer.new_id) {
            Ok((message, json)) => writer.kept(&message, json.as_bytes())?,
            Err(reason) => writer.skip(number, reason),
        }
    }
    writer.end(about)?;
    Ok(())
}
