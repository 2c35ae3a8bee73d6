//! Memories of agents: their own, and those that the agents of a project share.

use std::fmt::Debug;

use chorus_base::error::Error;
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemorySource;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// Limit of a memory's text, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 10;
/// Limit of a path, in bytes.
const MAX_PATH_BYTES: usize = 512;
/// Limit of entries of an agent's own memory, and of a project's.
pub const MAX_ENTRIES: u64 = 1000;

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRow {
    pub id: Uuid,
    /// The agent that the memory belongs to, or that wrote the project's memory.
    pub agent: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    /// The project whose agents share the memory; `None` if it is the agent's own.
    pub project: Option<String>,
    pub text: String,
    /// Path of the file in the workspace that it is about.
    pub path: Option<String>,
    pub at: Timestamp,
    /// The user on whose behalf it was stored.
    pub user: String,
    pub source: MemorySource,
    /// Id of the message with the tool call that stored it.
    pub message: Option<String>,
}

/// The memories that an agent sees: its own, and those of its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryScope {
    pub agent: Uuid,
    pub project: Option<String>,
}

/// Outcome of storing a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberOutcome {
    /// Stored under this id.
    New(Uuid),
    /// This entry has the same text already.
    Known(Uuid),
}

/// The table of memories. They are shown in the order of the source, those of people first, and of those with the same
/// source the newest first.
pub trait MemoryTable: Debug + Send + Sync {
    /// Stores a memory, unless there is an equal one in the same memory: with the same text and path. If the row's id is in
    /// use, the memory gets a new one.
    ///
    /// # Errors
    /// [`limit_error`] if the memory, of the agent or of the project, has [`MAX_ENTRIES`].
    fn insert(&self, row: MemoryRow) -> CatalogWrite<RememberOutcome>;

    /// Returns all memories that an agent sees, in the order in which they are shown.
    fn list_visible(&self, whose: MemoryScope) -> CatalogRead<'_, Vec<MemoryRow>>;

    /// Returns the first `most` memories and the total number for each of `whose`, in that order.
    fn first_visible(&self, whose: Vec<MemoryScope>, most: u32) -> CatalogRead<'_, Vec<(Vec<MemoryRow>, u64)>>;

    /// Returns the memories that were written by or for an agent, oldest first: its own, and those it shares.
    fn list_written_by(&self, agent: Uuid) -> CatalogRead<'_, Vec<MemoryRow>>;

    /// Returns true if there is an entry with this id.
    fn contains(&self, id: Uuid) -> CatalogRead<'_, bool>;

    /// Replaces the text of an entry, which counts as written by a person from then on.
    fn update_text(&self, id: Uuid, text: String) -> CatalogWrite<()>;

    /// Deletes entries.
    fn delete(&self, ids: Vec<Uuid>) -> CatalogWrite<()>;

    /// Deletes the own memories of an agent; those it shared with its project stay.
    fn delete_own(&self, agent: Uuid) -> CatalogWrite<()>;
}

/// Error for a memory that is full; `row` is the one that does not fit.
#[must_use]
pub fn limit_error(row: &MemoryRow, count: u64) -> Error {
    let whose = row.project.as_ref().map_or_else(|| row.agent_name.clone(), |project| format!("project {project}"));
    let text = format!("{whose} already has {count} memory entries, which is the limit");
    Error::new(ErrorKind::LimitReached, text).hint("remove entries: chorusctl memory remove ID")
}

/// Validates a text and trims it.
///
/// # Errors
/// The reason why it cannot be stored.
pub fn validate_text(given: &str) -> Result<String, String> {
    let text = given.trim();
    if text.is_empty() {
        return Err("nothing to remember: the text is empty".into());
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("the text has {} bytes (at most {MAX_TEXT_BYTES})", text.len()));
    }
    if text.contains('\0') {
        return Err("the text contains a NUL character".into());
    }
    Ok(text.to_owned())
}

/// Validates and normalizes a path below the workspace; an empty one is `None`.
///
/// # Errors
/// The reason why it cannot be stored.
pub fn validate_path(given: Option<&str>) -> Result<Option<String>, String> {
    let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else { return Ok(None) };
    if given.len() > MAX_PATH_BYTES || given.chars().any(char::is_control) {
        return Err(format!("the path contains control characters, or has more than {MAX_PATH_BYTES} bytes"));
    }
    let parts: Vec<&str> = given.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if given.starts_with('/') || parts.is_empty() || parts.contains(&"..") {
        return Err("the path must be inside the workspace, for example src/main.rs".into());
    }
    Ok(Some(parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_workspace() {
        assert_eq!(validate_path(Some(" ./src//a b.rs/ ")).unwrap().as_deref(), Some("src/a b.rs"));
        assert_eq!(validate_path(Some(" ")).unwrap(), None);
        for bad in ["/etc/passwd", "../x", "a/../../b", ".", "a\nb", &"x".repeat(513)] {
            assert!(validate_path(Some(bad)).is_err(), "{bad:?}");
        }
    }
}
