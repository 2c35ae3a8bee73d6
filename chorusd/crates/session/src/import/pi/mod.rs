//! Imports sessions of pi and OpenClaw: JSONL in which each entry names the one before it. The last line is the end of the
//! conversation; what does not lead to it was left for another branch.

mod entry;
mod path;

use std::io::{BufRead, Seek};

use uuid::Uuid;

use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::line_seeker::LineSeeker;
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use entry::EntryReader;
use path::{Node, SessionTree};

/// The newest version of the format that was seen.
const NEWEST_VERSION: u64 = 4;

/// Returns whether an object is the first line of a session.
pub(super) fn is_start(fields: &RawObject<'_>) -> bool {
    fields.get_text("type").is_some_and(|kind| kind == "session") && fields.has("id") && fields.has("cwd")
}

/// Imports one conversation.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ImportedMetadata::default();
    let mut tree = SessionTree::default();
    let mut program = "pi";
    let mut lines = LineReader::new(&mut *source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset / 2);
        let (number, offset) = (line.number, line.offset);
        let parsed = line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        let read = parsed.and_then(|fields| {
            if is_start(&fields) && about.conversation.is_none() {
                read_start(&fields, &mut about);
                let version = fields.get_u64("version").unwrap_or(1);
                return if version > NEWEST_VERSION {
                    Err(format!("the format has version {version}; versions up to {NEWEST_VERSION} are known"))
                } else {
                    Ok(())
                };
            }
            if is_of_openclaw(&fields) {
                program = "openclaw";
            }
            if fields.get_text("type").is_some_and(|kind| kind == "session_info") {
                about.description = fields.get_text("name").map(String::from);
            }
            tree.add(&fields, number, offset)
        });
        if let Err(reason) = read {
            writer.skip(number, reason);
        }
    }
    let (order, left) = tree.into_path();
    for line in left {
        writer.leave_out(line, "on a branch that was abandoned");
    }
    let mut reader = LineSeeker::new(source)?;
    let mut entries = EntryReader::new(program);
    for Node { line, offset, .. } in order {
        writer.sink.report_progress(reader.progress());
        let Ok(fields) = RawObject::from_bytes(reader.read_line_at(offset)?) else {
            writer.skip(line, "the line changed while being read");
            continue;
        };
        match entries.parse(&fields, &mut about) {
            Ok(Some(entry)) => entry.write(writer)?,
            Ok(None) => {}
            Err(reason) => writer.skip(line, reason),
        }
    }
    about.program = Some(program.to_owned());
    let id = about.conversation.as_deref();
    about.id = id.map(|id| Uuid::parse_str(id).unwrap_or_else(|_| derived_id(&format!("{program}/{id}"))));
    writer.end_session(about)?;
    Ok(())
}

/// Returns whether only OpenClaw, which has the same format, writes such an entry.
fn is_of_openclaw(fields: &RawObject<'_>) -> bool {
    let custom = fields.get_text("customType");
    custom.is_some_and(|custom| custom.starts_with("openclaw") || custom == "model-snapshot")
        || fields.get("message").is_some_and(|message| message.get().contains("\"__openclaw\":"))
}

fn read_start(fields: &RawObject<'_>, about: &mut ImportedMetadata) {
    about.conversation = fields.get_text("id").map(String::from);
    about.project = fields.get_text("cwd").filter(|directory| !directory.is_empty()).map(String::from);
    about.started_at = fields.get("timestamp").and_then(parse_timestamp);
    about.model = fields.get_text("modelId").map(String::from);
    // The file that this one is a copy of: <time>_<id>.jsonl.
    let parent = fields.get_text("parentSession");
    let stem = parent.as_deref().and_then(|path| path.rsplit('/').next()?.strip_suffix(".jsonl"));
    about.parent_id = stem.and_then(|stem| Uuid::parse_str(stem.rsplit('_').next()?).ok());
}

#[cfg(test)]
mod tests;
