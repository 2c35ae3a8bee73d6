//! Imports chat sessions of VS Code (`chatSessions/*.json`), also as logs of changes (`*.jsonl`), and what `Chat: Export Chat…`
//! writes.

mod change_log;
mod request;

use std::io::{self, BufRead, Seek};

use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::object_list::for_each_object;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use change_log::ChangeLog;
pub(super) use change_log::is_change;

const PROGRAM: &str = "vscode-chat";

/// Imports a session, or all of a list.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut log = ChangeLog::default();
    for_each_object(source, writer, |number, fields, writer| match is_change(fields) {
        true => {
            if let Err(reason) = log.apply(fields) {
                writer.skip(number, reason);
            }
            Ok(())
        }
        false => import_session(number, fields, writer),
    })?;
    if let Some(session) = log.into_json() {
        match RawObject::from_bytes(session.as_bytes()) {
            Ok(fields) => import_session(1, &fields, writer)?,
            Err(reason) => writer.skip(1, reason),
        }
    }
    Ok(())
}

fn import_session(number: u64, fields: &RawObject<'_>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    let Some(requests) = fields.get("requests").and_then(list_entries) else {
        writer.skip(number, "not a chat session: it has no requests");
        return Ok(());
    };
    // An exported chat has no id of its own.
    let first =
        requests.first().and_then(|raw| RawObject::from_value(raw)).and_then(|first| first.get_filled("requestId"));
    let conversation = fields.get_filled("sessionId").or(first);
    let id = |id: &str| id.parse().unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{id}")));
    let mut about = ImportedMetadata {
        id: conversation.as_deref().map(id),
        conversation,
        description: fields.get_filled("customTitle").or_else(|| fields.get_filled("computedTitle")),
        started_at: fields.get("creationDate").and_then(parse_timestamp),
        ..ImportedMetadata::default()
    };
    for (at, raw) in (1_u64..).zip(requests) {
        let parsed = RawObject::from_value(raw).ok_or_else(|| "not an object".to_owned());
        match parsed.and_then(|fields| request::parse(&fields, &mut about)) {
            Ok(entries) => entries.into_iter().try_for_each(|entry| entry.write(writer))?,
            Err(reason) => writer.skip(number, format!("request {at}: {reason}")),
        }
    }
    writer.end_session(about)
}

#[cfg(test)]
mod tests;
