//! Tables of the connection to Discord, one module each.

mod announcements;
mod channels;
mod claims;
mod gateway_identifies;
mod outbox;

use std::sync::Arc;

use chorus_catalog::discord::DiscordTables;

use self::announcements::SqliteAnnouncementLog;
use self::channels::SqliteChannelTable;
use self::claims::SqliteClaimTable;
use self::gateway_identifies::SqliteIdentifyTable;
use self::outbox::SqliteOutboxTable;
use super::CatalogDb;
use super::settings::SqliteSettingTable;

/// Returns the tables of the connection to Discord.
pub(super) fn tables(db: &CatalogDb, settings: SqliteSettingTable) -> DiscordTables {
    DiscordTables {
        channels: Arc::new(SqliteChannelTable { db: db.clone() }),
        claims: Arc::new(SqliteClaimTable { db: db.clone() }),
        outbox: Arc::new(SqliteOutboxTable { db: db.clone() }),
        announcements: Arc::new(SqliteAnnouncementLog { db: db.clone(), settings }),
        identifies: Arc::new(SqliteIdentifyTable { db: db.clone() }),
        shared: None,
    }
}
