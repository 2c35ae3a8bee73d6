//! What tools ask of the rest of the daemon. The composition root gives it to them.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use uuid::Uuid;

/// The daemon as tools see it; `ops` is it.
pub trait Outside: Debug + Send + Sync {
    /// The agents there are, one a line.
    fn list_agents(&self, asker: Uuid) -> BoxFuture<'_, String>;
}
