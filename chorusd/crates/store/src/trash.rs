//! The trash: one directory per deleted thing, with metadata about it and its original path.
//!
//! An entry has a hidden name while it moves in or out and while it is deleted, so that the next start finds
//! interrupted operations (`ops/trash/recovery.rs`) without reading all other entries.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::private_fs::{create_private, move_dir, remove_dir, sync_dir, write_private};
use chorus_catalog::MemoryRow;
use chorus_proto::methods::trash::TrashKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Name of the trash directory below the home.
pub(crate) const TRASH_DIR: &str = "trash";

const METADATA_FILE: &str = "entry.json";
/// Name prefix of an entry that moves in or out.
const MOVING_PREFIX: &str = ".moving-";
/// Name prefix of an entry that is being deleted.
const DELETING_PREFIX: &str = ".deleting-";
const CONTENT_NAME: &str = "content";

/// Metadata of an entry, stored in its `entry.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMetadata {
    pub kind: TrashKind,
    pub agent_id: Uuid,
    /// Name of the agent, `session_id` of the session, or beginning of the memory's text.
    pub name: String,
    pub deleted_at: Timestamp,
    /// Original path, relative to the home.
    pub from: PathBuf,
    /// Set for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMetadata>,
    /// Set for a memory; it is complete, so the entry has no content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRow>,
}

/// Catalog fields of a deleted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMetadata {
    pub id: Uuid,
    pub agent_name: String,
    /// Hash of the messages when they were saved.
    pub sha256: String,
    pub last_used_at: Timestamp,
    /// Position in the order of sessions; earlier versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<i64>,
}

/// Progress of the operation that moves or deletes an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// No operation is in progress.
    Settled,
    /// The entry moves in or out.
    Moving,
    /// Part of the content may be deleted already.
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

/// An entry of the trash.
#[derive(Debug, Clone)]
pub struct TrashItem {
    /// Name of the directory in [`Stage::Settled`].
    pub id: String,
    pub stage: Stage,
    pub dir: PathBuf,
    /// `None` if the metadata cannot be read.
    pub metadata: Option<EntryMetadata>,
    pub deleted_at: Timestamp,
}

impl TrashItem {
    /// Path of the deleted file or directory.
    #[must_use]
    pub fn content(&self) -> PathBuf {
        self.dir.join(CONTENT_NAME)
    }

    /// Path of the content in [`Stage::Settled`].
    #[must_use]
    pub fn settled_content(&self) -> PathBuf {
        self.dir.with_file_name(&self.id).join(CONTENT_NAME)
    }

    /// Returns whether the content exists.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.content().symlink_metadata().is_ok()
    }

    /// Returns whether this is a copy of the session `id`.
    #[must_use]
    pub fn is_session(&self, id: Uuid) -> bool {
        self.metadata.as_ref().and_then(|note| note.session.as_ref()).is_some_and(|session| session.id == id)
    }
}

/// Moves `from` into the trash. The entry stays in [`Stage::Moving`] until the caller settles it. Blocks.
///
/// # Errors
/// If anything fails, the content stays at `from`.
pub fn move_in(home: &Path, from: &Path, note: &EntryMetadata) -> io::Result<TrashItem> {
    create_entry(home, note, |dir| move_dir(from, &dir.join(CONTENT_NAME)))
}

/// Creates an entry that consists of its metadata only. It is on the disk when this returns, in [`Stage::Moving`].
/// Blocks.
///
/// # Errors
/// If anything fails, there is no entry.
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
    // The entry itself must be durable before anything moves into it.
    let filled = write_metadata(&dir, note).and_then(|()| sync_dir(&trash)).and_then(|()| fill(&dir));
    // Keep the entry if its content could not be moved back.
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

/// Renames an entry's directory for `stage`. A start treats the entry the same under either name, so the caller's next
/// step decides whether the rename must be durable. Blocks.
fn rename_for_stage(entry: &TrashItem, stage: Stage) -> io::Result<TrashItem> {
    let dir = entry.dir.with_file_name(format!("{}{}", stage.prefix(), entry.id));
    if stage != entry.stage {
        fs::rename(&entry.dir, &dir)?;
    }
    Ok(TrashItem { stage, dir, ..entry.clone() })
}

/// Makes an entry visible whose move is complete. Blocks.
///
/// # Errors
/// If the rename fails, the next start makes the entry visible.
pub fn settle(entry: &TrashItem) -> io::Result<TrashItem> {
    rename_for_stage(entry, Stage::Settled)
}

/// Hides an entry that is about to move out, durably. Blocks.
pub fn begin_move(entry: &TrashItem) -> io::Result<TrashItem> {
    hide_durably(entry, Stage::Moving)
}

/// Hides an entry that is about to be deleted, durably: from here on it is never restored. Blocks.
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

/// Moves the content of an entry to `to`, which must not exist. The entry with its metadata stays. Blocks.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if `to` exists. After any error the entry is complete.
pub fn move_out(entry: &TrashItem, to: &Path) -> io::Result<()> {
    move_dir(&entry.content(), to)
}

/// Moves the content from `from` back into the entry after [`move_out`], and makes the entry visible. Blocks.
pub fn move_back(entry: &TrashItem, from: &Path) -> io::Result<()> {
    move_dir(from, &entry.content())?;
    settle(entry).map(drop)
}

/// Moves the content of an entry to `to`, which must not exist, and removes the entry. Blocks.
pub fn restore_to(entry: &TrashItem, to: &Path) -> io::Result<()> {
    move_out(entry, to)?;
    remove_if_empty(entry);
    Ok(())
}

/// Removes an entry that has no content. If that fails, the next start tries again. Blocks.
pub fn remove_if_empty(entry: &TrashItem) {
    if entry.has_content() {
        return;
    }
    if let Err(e) = fs::remove_dir_all(&entry.dir) {
        tracing::warn!(entry = %entry.id, "cannot remove an empty trash entry: {e}");
    }
}

/// Deletes an entry; its metadata goes last, so that the remains of an interrupted deletion can be identified. Blocks.
///
/// # Errors
/// If the deletion fails, the rest stays listed in the trash.
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

/// Lists the settled entries of the trash, newest first. Blocks.
pub fn list(home: &Path) -> io::Result<Vec<TrashItem>> {
    read_entries(home, |stage| stage == Stage::Settled)
}

/// Lists the entries whose move or deletion was interrupted. Blocks.
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
