//! The trash: a directory for each thing that was deleted, with a note of what it was and where it lay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_proto::methods::trash::TrashKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::agents_dir::{create_private, move_dir, remove_dir, write_private};
use super::catalog::MemoryRow;
use super::session_files::sync_dir;

/// Name of the trash below the home.
pub const TRASH: &str = "trash";

const NOTE: &str = "entry.json";
const CONTENT: &str = "content";

/// What an entry was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub kind: TrashKind,
    pub agent_id: Uuid,
    /// Of the agent, the session_id, or the beginning of what was remembered.
    pub name: String,
    pub deleted_at: Timestamp,
    /// Where it lay, below the home.
    pub from: PathBuf,
    /// Of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionNote>,
    /// Something that was remembered, all of it: there is no content beside the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRow>,
}

/// What the catalog knew of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    pub id: Uuid,
    pub agent_name: String,
    /// Of the messages when they were saved.
    pub sha256: String,
    pub last_used_at: Timestamp,
}

/// Something in the trash.
#[derive(Debug, Clone)]
pub struct Trashed {
    /// The directory's name.
    pub id: String,
    pub dir: PathBuf,
    /// `None`: it cannot be read.
    pub note: Option<Note>,
    pub deleted_at: Timestamp,
}

impl Trashed {
    /// The file or directory that was deleted.
    #[must_use]
    pub fn content(&self) -> PathBuf {
        self.dir.join(CONTENT)
    }

    /// Whether this is a copy of the session `id`.
    #[must_use]
    pub fn is_session(&self, id: Uuid) -> bool {
        self.note.as_ref().and_then(|note| note.session.as_ref()).is_some_and(|session| session.id == id)
    }
}

/// Moves what lies at `from` into the trash. Blocks.
///
/// # Errors
/// What the system says; it lies where it lay then.
pub fn put(home: &Path, from: &Path, note: &Note) -> io::Result<Trashed> {
    let id = id(note);
    let dir = home.join(TRASH).join(&id);
    create_private(&dir)?;
    let moved = write_note(&dir, note).and_then(|()| move_dir(from, &dir.join(CONTENT)));
    if moved.is_err() {
        let _ = fs::remove_dir_all(&dir);
    }
    moved.map(|()| Trashed { id, dir, note: Some(note.clone()), deleted_at: note.deleted_at })
}

/// Makes an entry that is nothing but its note; it is on the disk when this returns. Blocks.
///
/// # Errors
/// What the system says; there is no entry then.
pub fn note_only(home: &Path, note: &Note) -> io::Result<Trashed> {
    let id = id(note);
    let dir = home.join(TRASH).join(&id);
    create_private(&dir)?;
    let written = write_note(&dir, note).and_then(|()| sync_dir(&home.join(TRASH)));
    if written.is_err() {
        let _ = fs::remove_dir_all(&dir);
    }
    written.map(|()| Trashed { id, dir, note: Some(note.clone()), deleted_at: note.deleted_at })
}

fn id(note: &Note) -> String {
    format!("{}_{}", note.deleted_at.strftime("%Y-%m-%dT%H-%M-%SZ"), Uuid::new_v4())
}

fn write_note(dir: &Path, note: &Note) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(note)?;
    text.push('\n');
    write_private(&dir.join(NOTE), text.as_bytes())
}

/// Moves the content of an entry to `to`, where nothing may lie, and takes the entry away. Blocks.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where the place is taken, else what the system says; the entry is whole then.
pub fn take_out(entry: &Trashed, to: &Path) -> io::Result<()> {
    move_dir(&entry.content(), to)?;
    let _ = fs::remove_dir_all(&entry.dir);
    Ok(())
}

/// Deletes an entry for good; its note goes last, so that what is left of it is known. Blocks.
///
/// # Errors
/// What the system says.
pub fn remove(entry: &Trashed) -> io::Result<()> {
    let content = entry.content();
    match fs::symlink_metadata(&content) {
        Ok(there) if there.is_dir() => remove_dir(&content)?,
        Ok(_) => fs::remove_file(&content)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    fs::remove_dir_all(&entry.dir)
}

/// Everything in the trash, newest first. Blocks.
///
/// # Errors
/// What the system says.
pub fn list(home: &Path) -> io::Result<Vec<Trashed>> {
    let entries = match fs::read_dir(home.join(TRASH)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry?.path();
        if !dir.is_dir() {
            continue;
        }
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let note: Option<Note> = fs::read(dir.join(NOTE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let changed = || fs::metadata(&dir).ok().and_then(|at| Timestamp::try_from(at.modified().ok()?).ok());
        let deleted_at = note.as_ref().map(|note| note.deleted_at).or_else(changed).unwrap_or_default();
        found.push(Trashed { id, dir, note, deleted_at });
    }
    found.sort_by(|one, two| two.deleted_at.cmp(&one.deleted_at).then_with(|| one.id.cmp(&two.id)));
    Ok(found)
}
