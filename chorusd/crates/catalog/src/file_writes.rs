//! Rows of file writes: which conversation wrote each file of a workspace that several share. Rows of a file are deleted
//! when a conversation that saw all of them writes it again.

use std::fmt::Debug;

use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// SHA-256 of a file's content.
pub type FileHash = [u8; 32];

/// The last write of a file by a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWriteRow {
    pub agent: Uuid,
    /// Relative to the workspace.
    pub path: String,
    /// The id of the conversation; that of `main` is the agent's.
    pub conversation: Uuid,
    /// The content after the write; `None` if the conversation had not seen all of it.
    pub hash: Option<FileHash>,
    /// The position in the order of writes.
    pub at: u64,
}

/// Conversations that may have changed a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHistory {
    /// At most one row per conversation, the newest first.
    pub writes: Vec<FileWriteRow>,
    /// The ids of conversations of the agent that ever ran commands in the workspace.
    pub command_users: Vec<Uuid>,
}

/// The table of file writes.
pub trait FileWriteTable: Debug + Send + Sync {
    /// Returns the position of the newest write of all agents; 0 if there is none.
    fn last_position(&self) -> CatalogRead<'_, u64>;

    /// Returns the conversations that may have changed a file of an agent.
    fn history(&self, agent: Uuid, path: String) -> CatalogRead<'_, FileHistory>;

    /// Records a write. A row with a hash replaces those of all conversations, because its writer had seen what they
    /// wrote; one without a hash replaces only that of its conversation.
    fn record(&self, row: FileWriteRow) -> CatalogWrite<()>;

    /// Records that a conversation runs commands in the workspace.
    fn record_command(&self, agent: Uuid, conversation: Uuid) -> CatalogWrite<()>;
}
