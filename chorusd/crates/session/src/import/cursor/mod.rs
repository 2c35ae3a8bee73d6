//! Imports conversations of Cursor: transcripts of its agent, and those of the editor, as the reader of its database writes them:
//! `cursor` with what describes the conversation, and `bubbles` with its messages.

mod agent_transcript;
mod bubble;

use std::io::{self, BufRead, Seek};

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::json_values::parse_timestamp;
use super::line_reader::LINE_TOO_LONG;
use super::object_list::report_end;
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
pub(super) use agent_transcript::is_message;
use bubble::BubbleReader;

const PROGRAM: &str = "cursor";

/// Imports one conversation.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    if !is_document(source)? {
        source.rewind()?;
        return Ok(agent_transcript::import(source, writer)?);
    }
    source.rewind()?;
    let mut about = ImportedMetadata::default();
    let mut bubbles = BubbleReader::default();
    let (mut value, mut count) = (Vec::new(), 0);
    let walked = Scanner::new(source).for_each_field(|scanner, key| match key {
        "bubbles" if scanner.peek()? == Some(b'[') => scanner.for_each_entry(|entry| {
            writer.sink.report_progress(entry.position);
            count = entry.number;
            let parsed = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
            match parsed.and_then(|fields| bubbles.parse(&fields, &mut about)) {
                Ok(Some(entry)) => entry.write(writer),
                Ok(None) => Ok(()),
                Err(reason) => {
                    writer.skip(count, reason);
                    Ok(())
                }
            }
        }),
        key => {
            if scanner.read_value(Some(&mut value))?
                && key == "cursor"
                && let Ok(fields) = RawObject::from_bytes(&value)
            {
                read_description(&fields, &mut about);
            }
            Ok(())
        }
    });
    if let Some(rest) = bubbles.finish(&about) {
        rest.write(writer)?;
    }
    report_end(walked, count + 1, writer)?;
    writer.end_session(about)?;
    Ok(())
}

/// Returns whether the first object is a conversation of the database.
fn is_document(source: &mut impl BufRead) -> Result<bool, ImportError> {
    let mut first = None;
    let walked = Scanner::new(source).for_each_field(|_, key| {
        first = Some(matches!(key, "cursor" | "bubbles"));
        Err(io::Error::from(io::ErrorKind::Interrupted).into())
    });
    match (first, walked) {
        (Some(is_document), _) => Ok(is_document),
        // A line that is broken, or none.
        (None, Err(error)) => Ok(error.into_line_and_reason().map(|_| false)?),
        (None, Ok(())) => Ok(false),
    }
}

fn read_description(fields: &RawObject<'_>, about: &mut ImportedMetadata) {
    let id = |id: &str| id.parse().unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{id}")));
    about.conversation = fields.get_filled("id");
    about.id = about.conversation.as_deref().map(id);
    let header = fields.get("header").and_then(RawObject::from_value);
    about.description = fields.get_filled("name").or_else(|| header.as_ref()?.get_filled("name"));
    about.started_at = fields.get("createdAt").and_then(parse_timestamp);
    let model = fields.get("modelConfig").and_then(RawObject::from_value);
    about.model = model.and_then(|model| model.get_filled("modelName")).filter(|model| model != "default");
    about.project = directory_of(fields).or_else(|| directory_of(header.as_ref()?));
}

/// Returns the directory that the workspace of a conversation is.
fn directory_of(fields: &RawObject<'_>) -> Option<String> {
    let workspace = RawObject::from_value(fields.get("workspaceIdentifier")?)?;
    RawObject::from_value(workspace.get("uri")?)?.get_filled("fsPath")
}

#[cfg(test)]
mod tests;
