//! Rows of the files that an agent has besides its sessions and its workspace: its docs/, and what its template had.

use std::fmt::Debug;

use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// Limit on the bytes of a file.
pub const MAX_AGENT_FILE_BYTES: u64 = 1 << 20;

/// Limit on the files of an agent.
pub const MAX_AGENT_FILES: usize = 512;

/// Limit on the bytes of all files of an agent.
pub const MAX_AGENT_FILES_BYTES: u64 = 8 << 20;

/// A file of an agent, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFileRow {
    /// Relative to the directory of the agent, as some node wrote it: it has to be checked before it is used.
    pub path: String,
    /// 1 at first, and 1 more with each write.
    pub version: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    /// Length of the content.
    pub bytes: u64,
}

/// The content of a file of an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentFileContent {
    pub path: String,
    pub sha256: [u8; 32],
    pub content: Vec<u8>,
}

impl Debug for AgentFileContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentFileContent").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The table of files. Its writes need the agent, as those of the journal do.
pub trait AgentFileTable: Debug + Send + Sync {
    /// Lists the files of an agent by path; of more than [`MAX_AGENT_FILES`] the first ones.
    fn list(&self, agent: Uuid) -> CatalogRead<'_, Vec<AgentFileRow>>;

    /// Returns the contents of files in no particular order. Skips those that do not exist, and those with more than
    /// [`MAX_AGENT_FILE_BYTES`].
    fn read(&self, agent: Uuid, paths: Vec<String>) -> CatalogRead<'_, Vec<AgentFileContent>>;

    /// Writes a file in place of its version `follows`, which is 0 for a file that does not exist. Returns false, and writes
    /// nothing, if that is not its version.
    fn put(&self, agent: Uuid, file: AgentFileContent, follows: u64) -> CatalogWrite<bool>;

    /// Deletes a file in its version `follows`. Returns false if it exists in another one.
    fn delete(&self, agent: Uuid, path: String, follows: u64) -> CatalogWrite<bool>;

    /// Deletes all files of an agent.
    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()>;
}
