//! The session with Discord's gateway, kept so that a daemon that starts anew goes on with it: a new one costs of a budget.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ops::Ops;

/// Where it stands in the table of small things.
const SESSION_SETTING: &str = "discord_session";

/// A session that can be taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySession {
    /// Whose it is, as a hash: of another token or server it is none.
    pub of: String,
    pub id: String,
    /// What came up to here was handed on.
    pub sequence: u64,
    /// `None`: where the gateway is.
    pub url: Option<String>,
}

/// The one of the daemon before, where there is one of `of`.
///
/// # Errors
/// A database that cannot be read.
pub async fn load(ops: &Ops, of: &str) -> Result<Option<GatewaySession>> {
    let text = ops.store.catalog.setting(SESSION_SETTING).await?;
    let session: Option<GatewaySession> = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(session.filter(|session| session.of == of))
}

/// Keeps it, or forgets the one that there was. It is on its way when this returns; the future tells when it is there.
pub fn store(ops: &Ops, session: Option<&GatewaySession>) -> impl Future<Output = Result<()>> + Send + use<> {
    let text = session.and_then(|session| serde_json::to_string(session).ok());
    ops.store.catalog.set_setting(SESSION_SETTING, text)
}
