//! The trash: a directory for each thing that was deleted, with a note of what it was and where it lay.
//!
//! An entry has a hidden name while it moves in or out and while it is deleted, so that a start finds what a crash cut short
//! (`ops/trash/settle.rs`) without looking at all the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_proto::methods::trash::TrashKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::catalog::MemoryRow;
use super::private_fs::{create_private, move_dir, remove_dir, write_private};
use super::session_files::sync_dir;

/// Name of the trash below the home.
pub const TRASH_DIR: &str = "trash";

const METADATA_FILE: &str = "entry.json";
/// Prefix of the name of an entry that moves in or out.
const MOVING_PREFIX: &str = ".moving-";
/// Prefix of the name of an entry that is being deleted.
const DELETING_PREFIX: &str = ".deleting-";
const CONTENT_NAME: &str = "content";

/// What an entry was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMetadata {
    pub kind: TrashKind,
    pub agent_id: Uuid,
    /// Of the agent, the session_id, or the beginning of what was remembered.
    pub name: String,
    pub deleted_at: Timestamp,
    /// Where it lay, below the home.
    pub from: PathBuf,
    /// Of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMetadata>,
    /// Something that was remembered, all of it: there is no content beside the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRow>,
}

/// What the catalog knew of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMetadata {
    pub id: Uuid,
    pub agent_name: String,
    /// Of the messages when they were saved.
    pub sha256: String,
    pub last_used_at: Timestamp,
    /// The place in the order of sessions. Earlier versions had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<i64>,
}

/// How far the verb that moves or deletes an entry has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is under way.
    Settled,
    /// It moves in or out.
    Moving,
    /// Some of its content may be deleted already.
    Deleting,
}

impl Stage {
    fn prefix(self) -> &'static str {
        match self {
            Self::Settled => "",
            Self::Moving => MOVING_PREFIX,
            Self::Deleting => DELETING_PREFIX,
        }
    }

    /// Splits the name of an entry's directory into its stage and its id.
    fn parse(name: &str) -> Option<(Self, &str)> {
        let stages = [Self::Moving, Self::Deleting];
        let hidden = stages.into_iter().find_map(|stage| Some((stage, name.strip_prefix(stage.prefix())?)));
        hidden.or_else(|| (!name.starts_with('.')).then_some((Self::Settled, name)))
    }
}

/// Something in the trash.
#[derive(Debug, Clone)]
pub struct TrashItem {
    /// The directory's name once nothing is under way.
    pub id: String,
    pub stage: Stage,
    pub dir: PathBuf,
    /// `None`: it cannot be read.
    pub metadata: Option<EntryMetadata>,
    pub deleted_at: Timestamp,
}

impl TrashItem {
    /// The file or directory that was deleted.
    #[must_use]
    pub fn content(&self) -> PathBuf {
        self.dir.join(CONTENT_NAME)
    }

    /// The path of the content once nothing is under way.
    #[must_use]
    pub fn settled_content(&self) -> PathBuf {
        self.dir.with_file_name(&self.id).join(CONTENT_NAME)
    }

    /// Returns whether the content is there.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.content().symlink_metadata().is_ok()
    }

    /// Whether this is a copy of the session `id`.
    #[must_use]
    pub fn is_session(&self, id: Uuid) -> bool {
        self.metadata.as_ref().and_then(|note| note.session.as_ref()).is_some_and(|session| session.id == id)
    }
}

/// Moves what lies at `from` into the trash. The entry stays [`Stage::Moving`] until the caller settles it. Blocks.
///
/// # Errors
/// What the system says; it lies where it lay then.
pub fn move_in(home: &Path, from: &Path, note: &EntryMetadata) -> io::Result<TrashItem> {
    create_entry(home, note, |dir| move_dir(from, &dir.join(CONTENT_NAME)))
}

/// Makes an entry that is nothing but its note; it is on the disk when this returns, [`Stage::Moving`]. Blocks.
///
/// # Errors
/// What the system says; there is no entry then.
pub fn create_without_content(home: &Path, note: &EntryMetadata) -> io::Result<TrashItem> {
    create_entry(home, note, |_| Ok(()))
}

fn create_entry(
    home: &Path,
    note: &EntryMetadata,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<TrashItem> {
    let trash = home.join(TRASH_DIR);
    let id = format!("{}_{}", note.deleted_at.strftime("%Y-%m-%dT%H-%M-%SZ"), Uuid::new_v4());
    let dir = trash.join(format!("{MOVING_PREFIX}{id}"));
    create_private(&dir)?;
    // The entry itself is on the disk before anything moves into it.
    let filled = write_metadata(&dir, note).and_then(|()| sync_dir(&trash)).and_then(|()| fill(&dir));
    // Content that could not be moved back is in it still.
    if filled.is_err() && dir.join(CONTENT_NAME).symlink_metadata().is_err() {
        let _ = fs::remove_dir_all(&dir);
    }
    filled.map(|()| TrashItem {
        id,
        stage: Stage::Moving,
        dir,
        metadata: Some(note.clone()),
        deleted_at: note.deleted_at,
    })
}

fn write_metadata(dir: &Path, note: &EntryMetadata) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(note)?;
    text.push('\n');
    write_private(&dir.join(METADATA_FILE), text.as_bytes())
}

/// Gives an entry the name of a stage. A start that finds the name of the stage before treats the entry alike, so only the
/// caller's next step decides whether this must be durable. Blocks.
fn rename_for_stage(entry: &TrashItem, stage: Stage) -> io::Result<TrashItem> {
    let dir = entry.dir.with_file_name(format!("{}{}", stage.prefix(), entry.id));
    if stage != entry.stage {
        fs::rename(&entry.dir, &dir)?;
    }
    Ok(TrashItem { stage, dir, ..entry.clone() })
}

/// Shows an entry whose move is complete. Blocks.
///
/// # Errors
/// The error of the system; the next start shows it then.
pub fn settle(entry: &TrashItem) -> io::Result<TrashItem> {
    rename_for_stage(entry, Stage::Settled)
}

/// Hides an entry that is about to move out, durably. Blocks.
///
/// # Errors
/// The error of the system.
pub fn begin_move(entry: &TrashItem) -> io::Result<TrashItem> {
    hide_durably(entry, Stage::Moving)
}

/// Hides an entry that is about to be deleted, durably: from here on it is never restored. Blocks.
///
/// # Errors
/// The error of the system.
pub fn begin_delete(entry: &TrashItem) -> io::Result<TrashItem> {
    hide_durably(entry, Stage::Deleting)
}

fn hide_durably(entry: &TrashItem, stage: Stage) -> io::Result<TrashItem> {
    let hidden = rename_for_stage(entry, stage)?;
    match hidden.dir.parent().map_or(Ok(()), sync_dir) {
        Ok(()) => Ok(hidden),
        Err(e) => {
            let _ = rename_for_stage(&hidden, entry.stage);
            Err(e)
        }
    }
}

/// Moves the content of an entry to `to`, where nothing may lie. The entry with its note stays. Blocks.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where the place is taken, else what the system says; the entry is whole then.
pub fn move_out(entry: &TrashItem, to: &Path) -> io::Result<()> {
    move_dir(&entry.content(), to)
}

/// Moves what [`move_out`] moved to `from` back into the entry, and shows it. Blocks.
///
/// # Errors
/// The error of the system.
pub fn move_back(entry: &TrashItem, from: &Path) -> io::Result<()> {
    move_dir(from, &entry.content())?;
    settle(entry).map(drop)
}

/// Moves the content of an entry to `to`, where nothing may lie, and removes the entry. Blocks.
///
/// # Errors
/// As [`move_out`].
pub fn restore_to(entry: &TrashItem, to: &Path) -> io::Result<()> {
    move_out(entry, to)?;
    remove_if_empty(entry);
    Ok(())
}

/// Removes an entry that has nothing in it but its note. Where that fails, the next start tries again. Blocks.
pub fn remove_if_empty(entry: &TrashItem) {
    if entry.has_content() {
        return;
    }
    if let Err(e) = fs::remove_dir_all(&entry.dir) {
        tracing::warn!(entry = %entry.id, "an empty entry of the trash cannot be removed: {e}");
    }
}

/// Deletes an entry; its note goes last, so that what is left of it is known. Blocks.
///
/// # Errors
/// The error of the system; what is left is shown in the trash then.
pub fn delete_entry(entry: &TrashItem) -> io::Result<()> {
    let entry = begin_delete(entry)?;
    let removed = delete_contents(&entry);
    if removed.is_err() {
        let _ = settle(&entry);
    }
    removed
}

fn delete_contents(entry: &TrashItem) -> io::Result<()> {
    let content = entry.content();
    match fs::symlink_metadata(&content) {
        Ok(there) if there.is_dir() => remove_dir(&content)?,
        Ok(_) => fs::remove_file(&content)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    fs::remove_dir_all(&entry.dir)
}

/// Lists everything in the trash that is settled, newest first. Blocks.
///
/// # Errors
/// What the system says.
pub fn list(home: &Path) -> io::Result<Vec<TrashItem>> {
    read_entries(home, |stage| stage == Stage::Settled)
}

/// Lists the entries whose move or deletion did not end. Blocks.
///
/// # Errors
/// The error of the system.
pub fn list_unfinished(home: &Path) -> io::Result<Vec<TrashItem>> {
    read_entries(home, |stage| stage != Stage::Settled)
}

fn read_entries(home: &Path, wanted: impl Fn(Stage) -> bool) -> io::Result<Vec<TrashItem>> {
    let entries = match fs::read_dir(home.join(TRASH_DIR)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry?.path();
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((stage, id)) = Stage::parse(&name).filter(|(stage, _)| wanted(*stage)) else { continue };
        if !dir.is_dir() {
            continue;
        }
        let note: Option<EntryMetadata> =
            fs::read(dir.join(METADATA_FILE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let changed = || fs::metadata(&dir).ok().and_then(|at| Timestamp::try_from(at.modified().ok()?).ok());
        let deleted_at = note.as_ref().map(|note| note.deleted_at).or_else(changed).unwrap_or_default();
        found.push(TrashItem { id: id.to_owned(), stage, dir, metadata: note, deleted_at });
    }
    found.sort_by(|one, two| two.deleted_at.cmp(&one.deleted_at).then_with(|| one.id.cmp(&two.id)));
    Ok(found)
}
