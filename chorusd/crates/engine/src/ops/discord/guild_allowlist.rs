//! The default allowlist of guilds, if the configuration has none: those that Chorus was in at its first connection.
//! Later ones are not served.

use chorus_base::error::{Error, Result};

use crate::ops::Ops;

/// The setting with their ids.
const ALLOWLIST_SETTING: &str = "discord_servers";

/// Returns the stored allowlist; `None` before the first connection.
pub async fn load(ops: &Ops) -> Result<Option<Vec<u64>>> {
    let Some(text) = ops.store.catalog.settings.get(ALLOWLIST_SETTING).await? else { return Ok(None) };
    let servers = serde_json::from_str(&text);
    servers.map(Some).map_err(|e| Error::internal(format!("cannot read the list of allowed Discord servers: {e}")))
}

/// Stores the allowlist. The write is queued when this returns; the future completes when it is done.
pub fn store(ops: &Ops, servers: &[u64]) -> impl Future<Output = Result<()>> + Send + use<> {
    ops.store.catalog.settings.set(ALLOWLIST_SETTING, serde_json::to_string(servers).ok())
}

/// Describes a guild that invited Chorus but is not served.
#[must_use]
pub fn describe_unserved(id: u64, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("invited to {name:?} ({id}), which is not an allowed server"),
        None => format!("invited to server {id}, which is not an allowed server"),
    }
}

/// The hint about such guilds.
pub const UNSERVED_HINT: &str = "to allow it, add its ID to `guilds` in [discord], together with the current servers";
