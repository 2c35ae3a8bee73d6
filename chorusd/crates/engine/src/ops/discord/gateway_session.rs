//! Stores the gateway session, so that a restarted daemon resumes it. A new session would be charged to a budget.

use chorus_base::error::Result;
use serde::{Deserialize, Serialize};

use crate::ops::Ops;

/// The setting with the session.
const SESSION_SETTING: &str = "discord_session";

/// A gateway session that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySession {
    /// A hash of the token and of the API and gateway addresses. The session is valid only with the same ones.
    pub of: String,
    pub id: String,
    /// Events up to this sequence number were processed.
    pub sequence: u64,
    /// The address to resume at; `None` for the usual one.
    pub url: Option<String>,
}

/// Returns the stored session if it belongs to `of`.
pub async fn load(ops: &Ops, of: &str) -> Result<Option<GatewaySession>> {
    let text = ops.store.catalog.settings.get(SESSION_SETTING).await?;
    let session: Option<GatewaySession> = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(session.filter(|session| session.of == of))
}

/// Stores the session; `None` deletes it. The write is queued when this returns; the future completes when it is done.
pub fn store(ops: &Ops, session: Option<&GatewaySession>) -> impl Future<Output = Result<()>> + Send + use<> {
    let text = session.and_then(|session| serde_json::to_string(session).ok());
    ops.store.catalog.settings.set(SESSION_SETTING, text)
}
