//! Keeping the session on the disk, as far as it has come.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use crate::discord::bridge::Bridge;
use crate::ops::discord::session::{self, Session};

/// It is not written more often. After a crash events of this time are told again, which harms nobody.
const OFTEN: Duration = Duration::from_secs(5);
/// For the last time that it is written.
const LAST: Duration = Duration::from_secs(1);

/// Writes the session down, and finds the one of the daemon before.
#[derive(Debug)]
pub struct Keeper {
    bridge: Arc<Bridge>,
    of: String,
    written: Option<Instant>,
}

impl Keeper {
    pub fn new(bridge: &Arc<Bridge>) -> Self {
        let config = &bridge.ops.config.discord;
        let gateway = config.gateway_url.as_deref().unwrap_or_default();
        let whole = [bridge.token.expose(), &config.api_base, gateway].join("\n");
        let hash = Sha256::digest(whole.as_bytes());
        let of = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self { bridge: bridge.clone(), of, written: None }
    }

    /// The session of the daemon before, where it is of this token.
    pub async fn found(&self) -> Option<Session> {
        session::kept(&self.bridge.ops, &self.of).await.ok().flatten()
    }

    /// A session as it stands.
    pub fn session(&self, id: &str, sequence: u64, url: Option<String>) -> Session {
        Session { of: self.of.clone(), id: id.to_owned(), sequence, url }
    }

    /// Whether it was not written for a while.
    pub fn is_due(&self) -> bool {
        self.written.is_none_or(|written| written.elapsed() >= OFTEN)
    }

    /// Writes it without waiting.
    pub fn keep(&mut self, session: Option<&Session>) {
        self.written = Some(Instant::now());
        drop(session::keep(&self.bridge.ops, session));
    }

    /// Writes it for the last time.
    pub async fn close(&self, session: Option<&Session>) {
        let _ = timeout(LAST, session::keep(&self.bridge.ops, session)).await;
    }
}
