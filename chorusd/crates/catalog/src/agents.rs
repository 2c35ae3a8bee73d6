//! Rows of agents.

use std::fmt::Debug;
use std::path::{Component, Path};

use chorus_base::error::Error;
use chorus_proto::{AgentStatus, ErrorKind};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite, MemoryRow};

/// A row of the table of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub id: Uuid,
    pub name: String,
    pub status: AgentStatus,
    pub created_at: Timestamp,
    /// Directory of the agent, relative to the home, for example `agents/frontend`.
    pub dir: String,
    /// The last valid agent.json.
    pub config: String,
    /// Stamp of the file that `config` was read from; a different one means that the file has changed.
    pub stamp: String,
    /// Number of the agent's sessions. The table counts them; the value of a row that is written is ignored.
    pub sessions: u64,
}

/// The table of agents.
pub trait AgentTable: Debug + Send + Sync {
    /// Lists the agents by name and then by the time of creation, with destroyed ones if `destroyed`.
    fn list(&self, destroyed: bool) -> CatalogRead<'_, Vec<AgentRow>>;

    /// Returns the agents with these ids, in no particular order; skips unknown ids.
    fn list_by_id(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<AgentRow>>;

    /// Returns the agent with this name that is not destroyed.
    fn find(&self, name: String) -> CatalogRead<'_, Option<AgentRow>>;

    /// Lists the ids of destroyed agents.
    fn list_destroyed(&self) -> CatalogRead<'_, Vec<Uuid>>;

    /// Inserts the agent, or updates the row with its id, which is active from then on if its status says so; the time of
    /// creation stays. The count of sessions stays correct.
    ///
    /// # Errors
    /// [`name_taken_error`] if another agent that is not destroyed has the name.
    fn upsert(&self, row: AgentRow) -> CatalogWrite<()>;

    /// As [`AgentTable::upsert`], with the agent's memories in the same commit. Returns the ids and texts of the
    /// memories that are new.
    fn upsert_with_memories(&self, row: AgentRow, memories: Vec<MemoryRow>) -> CatalogWrite<Vec<(Uuid, String)>>;

    /// Marks the agent as destroyed and records the directory that its files were moved to. Its conversations are not
    /// captured again: `tombstones` are their hashes.
    fn mark_destroyed(&self, id: Uuid, at: Timestamp, dir: String, tombstones: Vec<String>) -> CatalogWrite<()>;

    /// Deletes the row of an agent.
    fn delete(&self, id: Uuid) -> CatalogWrite<()>;
}

/// The error of an agent whose name another one has that is not destroyed.
#[must_use]
pub fn name_taken_error() -> Error {
    Error::new(ErrorKind::AlreadyExists, "another agent has this name")
        .hint("choose another name, or list all agents: chorusctl agent list")
}

/// Returns `dir` if it is below `agents/` or `trash/` in the home, and else a directory derived from the name: somebody
/// may have edited the catalog by hand.
#[must_use]
pub fn confine_to_home(dir: String, name: &str) -> String {
    let below = Path::new(&dir).components().all(|part| matches!(part, Component::Normal(_)));
    if below && ["agents/", "trash/"].iter().any(|folder| dir.starts_with(folder)) {
        return dir;
    }
    tracing::error!(agent = name, dir, "ignoring a directory outside the home in the catalog");
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    format!("agents/{}", name.chars().filter(plain).collect::<String>())
}
