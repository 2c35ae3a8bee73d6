//! Keeping the session on the disk, as far as it has come.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use crate::discord::app::DiscordApp;
use crate::ops::discord::gateway_session::{self, GatewaySession};

/// It is not written more often. After a crash events of this time are told again, which harms nobody.
const STORE_INTERVAL: Duration = Duration::from_secs(5);
/// For the last time that it is written.
const FINAL_STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes the session down, and finds the one of the daemon before.
#[derive(Debug)]
pub struct GatewaySessionStore {
    app: Arc<DiscordApp>,
    key: String,
    stored_at: Option<Instant>,
}

impl GatewaySessionStore {
    pub fn new(bridge: &Arc<DiscordApp>) -> Self {
        let config = &bridge.ops.config.discord;
        let gateway = config.gateway_url.as_deref().unwrap_or_default();
        let whole = [bridge.token.expose(), &config.api_base, gateway].join("\n");
        let hash = Sha256::digest(whole.as_bytes());
        let key = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self { app: bridge.clone(), key, stored_at: None }
    }

    /// The session of the daemon before, where it is of this token.
    pub async fn load(&self) -> Option<GatewaySession> {
        gateway_session::load(&self.app.ops, &self.key).await.ok().flatten()
    }

    /// A session as it stands.
    pub fn build_session(&self, id: &str, sequence: u64, url: Option<String>) -> GatewaySession {
        GatewaySession { of: self.key.clone(), id: id.to_owned(), sequence, url }
    }

    /// Whether it was not written for a while.
    pub fn is_due(&self) -> bool {
        self.stored_at.is_none_or(|written| written.elapsed() >= STORE_INTERVAL)
    }

    /// Writes it without waiting.
    pub fn store(&mut self, session: Option<&GatewaySession>) {
        self.stored_at = Some(Instant::now());
        drop(gateway_session::store(&self.app.ops, session));
    }

    /// Writes it for the last time.
    pub async fn store_final(&self, session: Option<&GatewaySession>) {
        let _ = timeout(FINAL_STORE_TIMEOUT, gateway_session::store(&self.app.ops, session)).await;
    }
}
