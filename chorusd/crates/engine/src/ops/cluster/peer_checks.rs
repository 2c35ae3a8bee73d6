//! Checks of the connections between nodes, which only builds with a cluster can make.

use std::fmt::Debug;

use chorus_base::error::Result;
use chorus_proto::methods::doctor::Check;
use futures_util::future::BoxFuture;

/// Checks the way to other nodes.
pub trait PeerChecks: Debug + Send + Sync {
    /// Checks the table `[cluster]` with its certificates.
    fn check_settings(&self) -> BoxFuture<'_, Vec<Check>>;

    /// Connects to a node as a request that is forwarded would.
    ///
    /// # Errors
    /// Says why it cannot be reached.
    fn reach<'a>(&'a self, node: &'a str, address: &'a str) -> BoxFuture<'a, Result<()>>;
}
