//! Stores the gateway session, so that a restarted daemon resumes it. A new session would be charged to a budget.

use std::sync::LazyLock;

use chorus_base::error::Result;
use chorus_config::discord::MAX_SHARDS;
use serde::{Deserialize, Serialize};

use crate::ops::Ops;

/// The setting with the session.
const SESSION_SETTING: &str = "discord_session";

/// A gateway session that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySession {
    /// A hash of the token, of the API and gateway addresses, and of the shard and the number of shards. The session is valid only with the same ones.
    pub of: String,
    pub id: String,
    /// Events up to this sequence number were processed.
    pub sequence: u64,
    /// The address to resume at; `None` for the usual one.
    pub url: Option<String>,
}

/// Returns the setting with the session of a shard.
fn setting(shard: u32) -> &'static str {
    static OF_SHARDS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..MAX_SHARDS).map(|shard| format!("{SESSION_SETTING}_{shard}")).collect());
    let of_shard = || OF_SHARDS.get(usize::try_from(shard).ok()?).map(String::as_str);
    if shard == 0 { SESSION_SETTING } else { of_shard().unwrap_or(SESSION_SETTING) }
}

/// Returns the stored session of a shard if it belongs to `of`.
pub async fn load(ops: &Ops, shard: u32, of: &str) -> Result<Option<GatewaySession>> {
    let text = ops.store.catalog.settings.get(setting(shard)).await?;
    let session: Option<GatewaySession> = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(session.filter(|session| session.of == of))
}

/// Stores the session of a shard; `None` deletes it. The write is queued when this returns; the future completes when it is done.
pub fn store(
    ops: &Ops,
    shard: u32,
    session: Option<&GatewaySession>,
) -> impl Future<Output = Result<()>> + Send + use<> {
    let text = session.and_then(|session| serde_json::to_string(session).ok());
    ops.store.catalog.settings.set(setting(shard), text)
}
