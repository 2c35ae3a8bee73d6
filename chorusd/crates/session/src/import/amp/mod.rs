//! Imports threads of Amp, as `amp threads export` writes them, and as older versions of its command line kept them: one JSON
//! object.

mod message;

use std::io::{self, BufRead, Seek};

use chorus_tool_files::path_of_file_url;
use uuid::Uuid;

use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::object_list::for_each_object;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use message::MessageReader;

const PROGRAM: &str = "amp";

/// Imports all threads.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    for_each_object(source, writer, import_thread)
}

fn import_thread(number: u64, fields: &RawObject<'_>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    let Some(messages) = fields.get("messages").and_then(list_entries) else {
        writer.skip(number, "not a thread: it has no messages");
        return Ok(());
    };
    let mut about = ImportedMetadata {
        id: fields.get_filled("id").map(|id| id_of(&id)),
        conversation: fields.get_filled("id"),
        description: fields.get_filled("title"),
        started_at: fields.get("created").and_then(parse_timestamp),
        ..ImportedMetadata::default()
    };
    read_environment(fields, &mut about);
    let mut reader = MessageReader::new(about.started_at);
    for raw in messages {
        let parsed = RawObject::from_value(raw).ok_or_else(|| "a message that is not an object".to_owned());
        match parsed.and_then(|fields| reader.parse(&fields, &mut about)) {
            Ok(entries) => entries.into_iter().try_for_each(|entry| entry.write(writer))?,
            Err(reason) => writer.skip(number, reason),
        }
    }
    writer.end_session(about)
}

/// Returns the id of the session for `T-<UUID>`.
fn id_of(thread: &str) -> Uuid {
    let uuid = thread.strip_prefix("T-").unwrap_or(thread);
    uuid.parse().unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{thread}")))
}

/// Reads the directory that the thread was started in, and its git branch.
fn read_environment(fields: &RawObject<'_>, about: &mut ImportedMetadata) {
    let inside = |around: &RawObject<'_>, name: &str| around.get(name).map(ToOwned::to_owned);
    let tree = inside(fields, "env")
        .and_then(|env| inside(&RawObject::from_value(&env)?, "initial"))
        .and_then(|initial| inside(&RawObject::from_value(&initial)?, "trees"))
        .and_then(|trees| list_entries(&trees)?.first().map(|tree| (*tree).to_owned()));
    let Some(tree) = tree.as_deref().and_then(RawObject::from_value) else { return };
    about.project = tree.get_text("uri").and_then(|uri| path_of_file_url(&uri));
    let repository = tree.get("repository").and_then(RawObject::from_value);
    let branch = repository.and_then(|repository| repository.get_filled("ref"));
    about.branch = branch.map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned());
}

#[cfg(test)]
mod tests;
