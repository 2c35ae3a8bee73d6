//! Files of agents as copies of rows that several daemons share. The rows are the truth at a claim; what somebody edits on
//! the machine of the agent's owner is written to them. Without such a store, the files are the only ones.

use std::fmt::Debug;
use std::path::PathBuf;

use chorus_base::error::Result;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Store;

/// The files of an agent on this machine.
#[derive(Debug, Clone)]
pub struct AgentDir {
    pub agent: Uuid,
    /// The name of the agent, for the log.
    pub name: String,
    pub dir: PathBuf,
}

/// The files that agents have besides their sessions and workspaces, as rows that several daemons share.
pub trait SharedFiles: Debug + Send + Sync {
    /// Brings the files of an agent that this daemon has just claimed up to their rows. What was edited here is written to the
    /// rows, or kept under another name if another daemon has changed the same file. `is_new_here` says that the directory was
    /// made for this claim.
    ///
    /// # Errors
    /// Those of the database. A file that cannot be used is named in the log.
    fn take_on(&self, of: AgentDir, is_new_here: bool) -> BoxFuture<'_, Result<()>>;

    /// Writes to the rows what was edited here since. Costs a look at the directory if nothing was.
    ///
    /// # Errors
    /// As [`SharedFiles::take_on`]; `busy` if another daemon has taken the agent over.
    fn store_edits(&self, of: AgentDir) -> BoxFuture<'_, Result<()>>;

    /// Deletes the rows of an agent that is purged.
    ///
    /// # Errors
    /// As [`SharedFiles::store_edits`].
    fn delete_of_agent(&self, agent: Uuid) -> BoxFuture<'_, Result<()>>;
}

impl Store {
    /// Brings the files of an agent up to their rows, as [`SharedFiles::take_on`]. Does nothing without such rows.
    ///
    /// # Errors
    /// As [`SharedFiles::take_on`].
    pub async fn take_on_files(&self, of: AgentDir, is_new_here: bool) -> Result<()> {
        match &self.agent_files {
            Some(files) => self.escalate_fatal(files.take_on(of, is_new_here).await),
            None => Ok(()),
        }
    }

    /// Stores what was edited in the files of an agent, as [`SharedFiles::store_edits`]. Does nothing without such rows.
    ///
    /// # Errors
    /// As [`SharedFiles::store_edits`].
    pub async fn store_file_edits(&self, of: AgentDir) -> Result<()> {
        match &self.agent_files {
            Some(files) => self.escalate_fatal(files.store_edits(of).await),
            None => Ok(()),
        }
    }

    /// As [`Store::store_file_edits`], for callers that have something else to do. A failure is logged.
    pub async fn try_store_file_edits(&self, of: AgentDir) {
        let Some(name) = self.agent_files.as_ref().map(|_| of.name.clone()) else { return };
        if let Err(failure) = self.store_file_edits(of).await {
            tracing::warn!(agent = name, %failure, "cannot store the files of an agent for other nodes yet");
        }
    }
}
