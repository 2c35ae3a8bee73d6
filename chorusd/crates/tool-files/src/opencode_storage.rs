//! opencode before version 1.2: a file for each session, each message and each part of one, below a directory `storage`.
//!
//! A session is `session/<project>/<session>.json`, its messages are `message/<session>/<message>.json`, and their parts are
//! `part/<message>/<part>.json`. Before version 0.6 all of it was in `session/`, once for each project: `info/<session>.json`,
//! `message/<session>/<message>.json` and `part/<session>/<message>/<part>.json`.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::bounded_read::read_text;
use crate::object_fields::ObjectFields;

/// The limit on the bytes of a file. A part can have an image.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file that cannot be read is being written if it was written so shortly before.
const WRITING: Duration = Duration::from_secs(5);

/// Fields of a part that say where it belongs. The database of later versions has them in columns.
const PLACE_FIELDS: [&str; 2] = ["sessionID", "messageID"];

/// The directories of a session.
struct SessionDirs {
    messages: PathBuf,
    /// The directory with one directory for each message.
    parts: PathBuf,
}

impl SessionDirs {
    /// Finds those of a session by its file.
    fn of(session: &Path) -> Option<Self> {
        let id = session.file_stem()?.to_str().filter(|id| id.starts_with("ses_"))?;
        let (group, sessions) = (session.parent()?, session.parent()?.parent()?);
        let storage = sessions.parent()?;
        if session.extension()? != "json" || sessions.file_name()? != "session" || storage.file_name()? != "storage" {
            return None;
        }
        Some(match group.file_name()? == "info" {
            true => Self { messages: sessions.join("message").join(id), parts: sessions.join("part").join(id) },
            false => Self { messages: storage.join("message").join(id), parts: storage.join("part") },
        })
    }
}

/// Returns whether a file describes a session whose messages are in other files.
#[must_use]
pub fn is_opencode_session(path: &Path) -> bool {
    SessionDirs::of(path).is_some()
}

/// Returns whether a file is a message of a session, or a part of one.
#[must_use]
pub fn is_opencode_part(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_in = |name: &str| path.ancestors().skip(1).any(|dir| dir.file_name().is_some_and(|found| found == name));
    is_in("storage")
        && (name.starts_with("msg_") && is_in("message")
            || name.starts_with("prt_") && is_in("part")
            || name.starts_with("ses_") && is_in("session_diff"))
}

/// Returns the file of the session that a message belongs to.
#[must_use]
pub fn session_of_message(message: &Path) -> Option<PathBuf> {
    let id = message.parent()?.file_name()?.to_str().filter(|id| id.starts_with("ses_"))?;
    let messages = message.parent()?.parent().filter(|dir| dir.file_name().is_some_and(|name| name == "message"))?;
    let (above, name) = (messages.parent()?, format!("{id}.json"));
    let session = if above.file_name()? == "session" {
        above.join("info").join(name)
    } else {
        let projects = fs::read_dir(above.join("session")).ok()?.flatten();
        projects.map(|project| project.path().join(&name)).find(|session| session.is_file())?
    };
    is_opencode_session(&session).then_some(session)
}

/// Returns the descriptions of the files of a session's messages.
#[must_use]
pub fn message_files(session: &Path) -> Vec<Metadata> {
    let Some(dirs) = SessionDirs::of(session) else { return Vec::new() };
    let entries = fs::read_dir(dirs.messages).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok().filter(Metadata::is_file)).collect()
}

/// Writes a session with its messages as the document that `opencode export` writes, message by message.
///
/// # Errors
/// The file describes no session, one of its files is being written, or `out` cannot be written. A file that is broken for
/// longer is left out.
pub fn write_opencode_session(session: &Path, out: &mut dyn Write) -> io::Result<()> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the file describes no session of opencode");
    let dirs = SessionDirs::of(session).ok_or_else(invalid)?;
    let info = read_json(session)?.ok_or_else(invalid)?;
    write!(out, "{{\"info\":{info},\"messages\":[")?;
    let mut messages = Vec::new();
    for path in files_in(&dirs.messages) {
        let created = read_json(&path)?.and_then(|json| serde_json::from_str::<Message>(&json).ok()?.time.created);
        messages.push((created.unwrap_or_default(), path));
    }
    messages.sort();
    let mut comma = "";
    for (_, path) in messages {
        // A broken one is reported by the importer.
        let message = read_json(&path)?.unwrap_or_else(|| "{}".into());
        write!(out, "{comma}\n{{\"info\":{message},\"parts\":[")?;
        comma = ",";
        let mut comma = "";
        for path in files_in(&dirs.parts.join(path.file_stem().unwrap_or_default())) {
            let part = read_json(&path)?;
            if let Some(fields) = part.as_deref().and_then(|part| serde_json::from_str::<ObjectFields<'_>>(part).ok()) {
                write!(out, "{comma}{}", fields.without(&PLACE_FIELDS)?)?;
                comma = ",";
            }
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"\n]}\n")
}

/// The time of a message, by which messages are sorted.
#[derive(Deserialize)]
struct Message {
    time: Time,
}

#[derive(Deserialize)]
struct Time {
    created: Option<i64>,
}

/// Returns the JSON files in a directory, sorted by name, which is the order in which they were made.
fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|name| name == "json")).collect();
    files.sort();
    files
}

/// Reads a file that is a JSON object. Returns `None` if it is broken, or too long.
fn read_json(path: &Path) -> io::Result<Option<String>> {
    let text = read_text(path, MAX_FILE_BYTES);
    let json =
        text.filter(|text| text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok());
    if json.is_none() {
        let written = fs::symlink_metadata(path).and_then(|file| file.modified());
        if written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < WRITING)) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "opencode is writing it"));
        }
    }
    Ok(json)
}
