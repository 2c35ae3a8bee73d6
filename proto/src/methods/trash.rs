//! `trash.*`: deleted agents, sessions and memory entries, until they are restored or the trash is emptied.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::MemoryEntry;
use super::method;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TrashKind {
    Agent,
    Session,
    /// Something that was remembered.
    Memory,
}

/// Something in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListResult {
    pub entries: Vec<TrashEntry>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoreParams {
    /// The entry's id or its beginning, or its name where only one has it.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoreResult {
    /// The agent that is back.
    pub agent: Option<Agent>,
    /// The session that is back.
    pub session: Option<Session>,
    /// What is remembered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryEntry>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmptyParams {
    /// Only what was deleted longer ago than this: `7d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmptyResult {
    /// What is gone now.
    pub entries: Vec<TrashEntry>,
}
