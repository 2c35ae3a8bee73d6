//! Checks of the connections between nodes, which only builds with a cluster can make.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_journal::{NodeRow, Owner, Ownership};
use chorus_proto::ErrorKind;
use chorus_proto::methods::doctor::Check;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

/// Time within which a node has to be reached that is listed, or that is to have agents of this one.
pub(in crate::ops) const REACH_LIMIT: Duration = Duration::from_secs(2);

/// The same while requests for the agent are pending.
const REACH_SOON: Duration = Duration::from_secs(1);

/// Checks the way to other nodes.
pub trait PeerChecks: Debug + Send + Sync {
    /// Checks the table `[cluster]` with its certificates.
    fn check_settings(&self) -> BoxFuture<'_, Vec<Check>>;

    /// Makes a new connection to a node, as for a request that is forwarded.
    ///
    /// # Errors
    /// Says why it cannot be reached, without its name and address.
    fn reach<'a>(&'a self, node: &'a str, address: &'a str) -> BoxFuture<'a, Result<()>>;
}

/// The checks. Set once this node has a port, by which it reaches others.
pub type PeerChecksCell = Arc<OnceLock<Arc<dyn PeerChecks>>>;

/// Tries to reach a node within `limit`.
///
/// # Errors
/// Says why it cannot be reached, and what to do.
pub(in crate::ops) async fn reach_within(
    checks: &dyn PeerChecks,
    (node, address): (&str, &str),
    limit: Duration,
) -> Result<()> {
    let failed = |what: &str, hint: &str| Err(Error::new(ErrorKind::Busy, what).hint(hint));
    if address.is_empty() {
        return failed("it has no address", "set listen and advertise in its table [cluster]");
    }
    match timeout(limit, checks.reach(node, address)).await {
        Ok(reached) => reached,
        Err(_) => failed("it does not answer", "check the network and the firewall between the nodes"),
    }
}

/// Tries to reach nodes within `limit`, all at once, and notes the outcomes for claims. Returns them in the order of the nodes; `None` if this node
/// has no port.
pub(in crate::ops) async fn reach_all(
    ownership: &dyn Ownership,
    checks: &PeerChecksCell,
    nodes: impl Iterator<Item = &NodeRow>,
    limit: Duration,
) -> Option<Vec<Result<()>>> {
    let checks = &**checks.get()?;
    let reach = |node: &NodeRow| {
        let (name, address) = (node.name.clone(), node.address.clone());
        async move { reach_noting(ownership, checks, (&name, &address), limit).await }
    };
    Some(join_all(nodes.map(reach)).await)
}

/// Returns whether this node reaches another one soon; true without a port, by which it could find out.
pub(in crate::ops) async fn reach_owner(ownership: &dyn Ownership, checks: &PeerChecksCell, node: &Owner) -> bool {
    match checks.get() {
        Some(checks) => reach_noting(ownership, &**checks, (&node.node, &node.address), REACH_SOON).await.is_ok(),
        None => true,
    }
}

async fn reach_noting(
    ownership: &dyn Ownership,
    checks: &dyn PeerChecks,
    (node, address): (&str, &str),
    limit: Duration,
) -> Result<()> {
    let reached = reach_within(checks, (node, address), limit).await;
    ownership.note_reach(node, reached.is_ok());
    reached
}
