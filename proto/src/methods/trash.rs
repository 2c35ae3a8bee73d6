//! `trash.*`: deleted agents, sessions and memory entries, until they are restored or the trash is emptied.

use jiff::Timestamp;

use super::memory::MemoryEntry;
use super::{method, wire};
use crate::agent::Agent;
use crate::session::Session;

method!(
    /// Lists the trash, newest first.
    List = "trash.list", ListParams => ListResult
);
method!(
    /// Restores an agent, a session or a memory entry.
    Restore = "trash.restore", RestoreParams => RestoreResult
);
method!(
    /// Deletes entries for good.
    Empty = "trash.empty", EmptyParams => EmptyResult
);

/// What was deleted.
#[wire(Copy, PartialEq, Eq)]
pub enum TrashKind {
    Agent,
    Session,
    /// Something that was remembered.
    Memory,
}

/// Something in the trash.
#[wire(PartialEq, Eq)]
pub struct TrashEntry {
    /// Names the entry; any unique beginning of at least 4 characters does too.
    pub id: String,
    /// Null where its note cannot be read: such an entry can only be emptied.
    pub kind: Option<TrashKind>,
    /// Of the agent, the session_id, or how what was remembered begins.
    pub name: String,
    /// Whose session or memory it was.
    pub agent_name: Option<String>,
    pub deleted_at: Timestamp,
    pub path: String,
}

#[wire(params)]
pub struct ListParams {}

#[wire(PartialEq)]
pub struct ListResult {
    pub entries: Vec<TrashEntry>,
}

#[wire(params)]
pub struct RestoreParams {
    /// The entry's id or its beginning, or its name where only one has it.
    pub id: String,
}

#[wire(PartialEq)]
pub struct RestoreResult {
    /// The agent that is back.
    pub agent: Option<Agent>,
    /// The session that is back.
    pub session: Option<Session>,
    /// What is remembered again.
    #[omit_empty]
    pub memory: Option<MemoryEntry>,
}

#[wire(params)]
pub struct EmptyParams {
    /// Only what was deleted longer ago than this: `7d`.
    pub older_than: Option<String>,
}

#[wire(PartialEq)]
pub struct EmptyResult {
    /// What is gone now.
    pub entries: Vec<TrashEntry>,
}
