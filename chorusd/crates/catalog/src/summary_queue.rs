//! Queue of sessions that a model will summarize. A row is deleted with its session, or once the summary is written or
//! given up.

use std::fmt::Debug;

use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// A pending summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingSummary {
    /// True if a person wrote the description, which then must be kept.
    pub described: bool,
}

/// The queue of sessions that wait for a summary.
pub trait SummaryQueue: Debug + Send + Sync {
    /// Adds a session to the queue, or replaces its entry, if the session still exists.
    fn push(&self, id: Uuid, wanted: PendingSummary) -> CatalogWrite<()>;

    /// Removes a session from the queue.
    fn remove(&self, id: Uuid) -> CatalogWrite<()>;

    /// Returns the queue's entry for a session.
    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<PendingSummary>>;

    /// Lists all sessions in the queue, newest first; in a cluster, those whose agents this process owns.
    fn list(&self) -> CatalogRead<'_, Vec<Uuid>>;
}
