//! The servers that Chorus was in first, where the configuration lists none: later ones are not served.

use crate::error::{Error, Result};
use crate::ops::Ops;

/// Where they stand in the table of small things.
const ALLOWLIST_SETTING: &str = "discord_servers";

/// Those that are remembered; `None`: there was no connection yet.
///
/// # Errors
/// A database that cannot be read, or what cannot be read in it.
pub async fn load(ops: &Ops) -> Result<Option<Vec<u64>>> {
    let Some(text) = ops.store.catalog.setting(ALLOWLIST_SETTING).await? else { return Ok(None) };
    let servers = serde_json::from_str(&text);
    servers.map(Some).map_err(|e| Error::internal(format!("which servers of Discord are served cannot be read: {e}")))
}

/// Remembers them. It is on its way when this returns; the future tells when it is there.
pub fn store(ops: &Ops, servers: &[u64]) -> impl Future<Output = Result<()>> + Send + use<> {
    ops.store.catalog.set_setting(ALLOWLIST_SETTING, serde_json::to_string(servers).ok())
}

/// What is said of a server that Chorus was invited to and does not serve.
#[must_use]
pub fn describe_unserved(id: u64, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("invited to {name:?} ({id}), which is not served"),
        None => format!("invited to the server {id}, which is not served"),
    }
}

/// What is to be done about such servers.
pub const UNSERVED_HINT: &str =
    "if it is one of yours, add its id to `guilds` of [discord], with those that are served now";
