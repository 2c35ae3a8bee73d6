//! Stores the gateway session on disk, with the sequence number of its last event.

use std::sync::Arc;
use std::time::Duration;

use chorus_engine::ops::discord::gateway_session;
use chorus_engine::ops::discord::gateway_session::GatewaySession;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use crate::app::DiscordApp;

/// Shortest time between two writes. After a crash the events of this time are replayed, which does no harm.
const STORE_INTERVAL: Duration = Duration::from_secs(5);
/// Time for the last write.
const FINAL_STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Stores the session, and loads the one of the previous daemon.
#[derive(Debug)]
pub(super) struct GatewaySessionStore {
    app: Arc<DiscordApp>,
    shard: u32,
    key: String,
    stored_at: Option<Instant>,
}

impl GatewaySessionStore {
    pub(super) fn new(app: &Arc<DiscordApp>, shard: u32) -> Self {
        let config = &app.ops.config.discord;
        let gateway = config.gateway_url.as_deref().unwrap_or_default();
        let mut whole = [app.token.expose(), &config.api_base, gateway].join("\n");
        if app.shards.count() > 1 {
            whole += &format!("\n{shard}/{}", app.shards.count());
        }
        let hash = Sha256::digest(whole.as_bytes());
        let key = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self { app: app.clone(), shard, key, stored_at: None }
    }

    /// Loads the session of the previous daemon, if it belongs to this token, API, gateway and shard.
    pub(super) async fn load(&self) -> Option<GatewaySession> {
        gateway_session::load(&self.app.ops, self.shard, &self.key).await.ok().flatten()
    }

    /// Builds the record of a session.
    pub(super) fn build_session(&self, id: &str, sequence: u64, url: Option<String>) -> GatewaySession {
        GatewaySession { of: self.key.clone(), id: id.to_owned(), sequence, url }
    }

    /// Returns whether the last write is at least [`STORE_INTERVAL`] ago.
    pub(super) fn is_due(&self) -> bool {
        self.stored_at.is_none_or(|written| written.elapsed() >= STORE_INTERVAL)
    }

    /// Stores the session without waiting for the write.
    pub(super) fn store(&mut self, session: Option<&GatewaySession>) {
        self.stored_at = Some(Instant::now());
        // Another node has continued it.
        if !self.app.has_shard(self.shard) {
            return;
        }
        drop(gateway_session::store(&self.app.ops, self.shard, session));
    }

    /// Stores the session for the last time and waits for the write.
    pub(super) async fn store_final(&self, session: Option<&GatewaySession>) {
        if !self.app.has_shard(self.shard) {
            return;
        }
        let _ = timeout(FINAL_STORE_TIMEOUT, gateway_session::store(&self.app.ops, self.shard, session)).await;
    }
}
