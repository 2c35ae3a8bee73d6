//! Starts new contexts that continue from saved sessions.

use std::sync::Arc;

use chorus_clock::Clock;
use chorus_store::Store;
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

use crate::agent::registry::Registry;
use crate::ops::session::SessionReader;

/// The services with which resume, compact and merge start a new context from saved sessions: they read the sessions,
/// have a model write the opening, and replace the live context.
#[derive(Debug)]
pub struct ContinuationStarter {
    pub store: Arc<Store>,
    pub sessions: Arc<SessionReader>,
    pub registry: Arc<Registry>,
    /// Locked for reading while a session is read, so that it cannot be deleted meanwhile.
    pub sessions_lock: Arc<RwLock<()>>,
    pub clock: Clock,
    /// Ends the requests to models when the daemon stops.
    pub stop: CancellationToken,
}
