//! Tables of the connection to Discord, one module each, and the leases of its parts. See docs/design/discord.md for which
//! node may write what.

mod announcements;
mod channels;
mod claims;
mod gateway_identifies;
mod leases;
mod news;
mod outbox;
mod posts;
mod sharing;

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionChanges;
use chorus_catalog::discord::DiscordTables;
use chorus_proto::ErrorKind;

pub use self::leases::DiscordLeases;
use super::CatalogDb;
pub use chorus_catalog::discord::DiscordLease;

/// The connection to Discord as one node of a cluster sees it.
#[derive(Debug, Clone)]
pub struct PostgresDiscord {
    pub tables: DiscordTables,
    pub leases: DiscordLeases,
}

impl PostgresDiscord {
    pub(super) fn new(db: &CatalogDb, changes: Arc<SessionChanges>) -> Self {
        let leases = DiscordLeases::new(db);
        let table = Arc::new(PostgresDiscordTables { db: db.clone(), leases: leases.clone(), changes });
        let tables = DiscordTables {
            channels: table.clone(),
            claims: table.clone(),
            outbox: table.clone(),
            announcements: table.clone(),
            identifies: table,
            shared: Some(Arc::new(leases.clone())),
        };
        Self { tables, leases }
    }
}

/// The tables in PostgreSQL.
#[derive(Debug)]
struct PostgresDiscordTables {
    db: CatalogDb,
    leases: DiscordLeases,
    /// Collects the agents that this node changes.
    changes: Arc<SessionChanges>,
}

/// Refuses numbers that cannot be ids of Discord: these will need the 64th bit only in some decades.
fn check_ids<const N: usize>(ids: [u64; N]) -> Result<()> {
    match ids.iter().find(|id| i64::try_from(**id).is_err()) {
        Some(id) => Err(Error::new(ErrorKind::StorageFailed, format!("{id} is not an id of Discord"))),
        None => Ok(()),
    }
}
