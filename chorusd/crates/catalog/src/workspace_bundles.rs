//! Rows of the bundles in which the checkpoints of a workspace are stored for other nodes.

use std::collections::HashSet;
use std::fmt::Debug;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// A bundle of the workspace of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceBundle {
    /// 1 at first, and 1 more with each bundle.
    pub number: u64,
    /// The tip of the bundle that this one continues; `None` if it is complete.
    pub base: Option<String>,
    /// The commit that it brings, as hex digits.
    pub tip: String,
    /// The object that has it.
    pub key: String,
    /// SHA-256 of the object.
    pub sha256: [u8; 32],
    /// Length of the object.
    pub bytes: u64,
    pub at: Timestamp,
    /// The node that wrote it.
    pub node: String,
    /// The last hand-over of the agent, if this bundle was the newest one then.
    pub handover: Option<WorkspaceHandover>,
}

/// How a node gave up an agent that was well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceHandover {
    /// The epoch in which it had the agent.
    pub epoch: i64,
    pub node: String,
    /// Files there that the newest bundle does not have as they were.
    pub newer_files: u64,
}

/// The table of bundles. Its writes need the agent, as those of the journal do.
pub trait WorkspaceBundleTable: Debug + Send + Sync {
    /// Lists the bundles of an agent by number.
    fn list(&self, agent: Uuid) -> CatalogRead<'_, Vec<WorkspaceBundle>>;

    /// Inserts a bundle and deletes those from number `replaces` on that come before it. Returns false, and changes nothing, if
    /// its number is not the next one.
    fn insert(&self, agent: Uuid, bundle: WorkspaceBundle, replaces: Option<u64>) -> CatalogWrite<bool>;

    /// Notes in the bundle with this number that this node is about to give the agent up.
    fn set_handover(&self, agent: Uuid, number: u64, newer_files: u64) -> CatalogWrite<()>;

    /// Returns those of `keys` that a row names.
    fn named(&self, keys: Vec<String>) -> CatalogRead<'_, HashSet<String>>;

    /// Deletes all bundles of an agent.
    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()>;
}
