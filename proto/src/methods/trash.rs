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

/// Kind of a deleted item.
#[wire(Copy, PartialEq, Eq)]
pub enum TrashKind {
    Agent,
    Session,
    /// A memory.
    Memory,
}

/// An item in the trash.
#[wire(PartialEq, Eq)]
pub struct TrashEntry {
    /// Identifies the entry; a unique prefix of at least 4 characters works, too.
    pub id: String,
    /// Null if its metadata cannot be read: such an entry can only be permanently deleted.
    pub kind: Option<TrashKind>,
    /// The agent's name, the session_id, or the start of the memory.
    pub name: String,
    /// The agent whose session or memory it was.
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
    /// The entry's id or a unique prefix of it, or its name if only one has it.
    pub id: String,
}

#[wire(PartialEq)]
pub struct RestoreResult {
    /// The restored agent.
    pub agent: Option<Agent>,
    /// The restored session.
    pub session: Option<Session>,
    /// The name that the session had, if another session has taken it and it was restored under a new one.
    #[omit_empty]
    pub former_name: Option<String>,
    /// The restored memory.
    #[omit_empty]
    pub memory: Option<MemoryEntry>,
    /// Sessions of an agent that stay in the trash: another agent has their conversations again.
    #[omit_empty]
    pub left: Option<u64>,
}

#[wire(params)]
pub struct EmptyParams {
    /// Only items that were deleted longer ago than this: `7d`.
    pub older_than: Option<String>,
}

#[wire(PartialEq)]
pub struct EmptyResult {
    /// The deleted items.
    pub entries: Vec<TrashEntry>,
}
