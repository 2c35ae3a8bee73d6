//! The operations `cluster.*`, and moving agents to other nodes.

pub mod drain;
pub mod forget;
mod mover;
mod peer_checks;
mod profile_hash;
pub mod status;

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_journal::Ownership;
use chorus_proto::ErrorKind;
use chorus_store::Store;

pub use mover::{AgentMover, Moved, MoverState};
pub use peer_checks::{PeerChecks, PeerChecksCell};
pub(in crate::ops) use peer_checks::{REACH_LIMIT, reach_all, reach_owner, reach_within};
pub use profile_hash::publish_profile_hash;

/// Returns what this daemon knows of its cluster.
///
/// # Errors
/// `unsupported` if it shares its database with nobody.
fn require_cluster(store: &Store) -> Result<&Arc<dyn Ownership>> {
    store.ownership.as_ref().ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "this daemon is not in a cluster: it keeps its agents in its own home")
            .hint("for a cluster, set kind = \"postgres\" in the table [store], and fill in the table [cluster]")
    })
}
