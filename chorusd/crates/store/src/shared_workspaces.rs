//! Checkpoints of workspaces as git bundles that several daemons share. Without such a store, the workspace of an agent stays
//! on its machine.

use std::fmt::Debug;

use chorus_base::error::Result;
use chorus_catalog::WorkspaceBundle;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Store;

/// A bundle that is not stored yet.
pub struct NewWorkspaceBundle {
    /// The number of the newest bundle so far, 0 if there is none.
    pub follows: u64,
    /// The tip of the bundle that it continues; `None` if it is complete.
    pub base: Option<String>,
    /// The commit that it brings, as hex digits.
    pub tip: String,
    pub content: Vec<u8>,
    /// The number from which on it replaces those before it.
    pub replaces: Option<u64>,
}

impl Debug for NewWorkspaceBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewWorkspaceBundle").field("tip", &self.tip).finish_non_exhaustive()
    }
}

/// The bundles of workspaces.
pub trait SharedWorkspaces: Debug + Send + Sync {
    /// Lists the bundles of an agent by number.
    ///
    /// # Errors
    /// Those of the database.
    fn list(&self, agent: Uuid) -> BoxFuture<'_, Result<Vec<WorkspaceBundle>>>;

    /// Stores a bundle.
    ///
    /// # Errors
    /// Those of the database and of the bucket; `busy` if another daemon has taken the agent over, `conflict` if its number is
    /// not the next one. Nothing of it is visible then.
    fn add(&self, agent: Uuid, bundle: NewWorkspaceBundle) -> BoxFuture<'_, Result<()>>;

    /// Reads a bundle.
    ///
    /// # Errors
    /// Those of the bucket; `git_failed` if the object is missing or not as it was written.
    fn read(&self, bundle: WorkspaceBundle) -> BoxFuture<'_, Result<Vec<u8>>>;

    /// Notes that this daemon is about to give the agent up, and how many files here the newest bundle does not have.
    ///
    /// # Errors
    /// As [`SharedWorkspaces::list`].
    fn set_handover(&self, agent: Uuid, number: u64, newer_files: u64) -> BoxFuture<'_, Result<()>>;

    /// Deletes the bundles of an agent that is purged.
    ///
    /// # Errors
    /// As [`SharedWorkspaces::list`].
    fn delete_of_agent(&self, agent: Uuid) -> BoxFuture<'_, Result<()>>;
}

impl Store {
    /// Keeps the checkpoints of workspaces in `workspaces`, too.
    #[must_use]
    pub fn with_workspaces(self, workspaces: std::sync::Arc<dyn SharedWorkspaces>) -> Self {
        Self { workspaces: Some(workspaces), ..self }
    }
}
