//! Tables of the connection to Discord, one module each.

mod announcements;
mod channels;
mod claims;
mod gateway_identifies;
mod outbox;

use super::{CatalogDb, SettingTable};
pub use announcements::{AnnouncementLog, Announcements};
pub use channels::{ChannelRow, ChannelTable};
pub use claims::{ClaimOutcome, ClaimTable, NewClaim, OpenClaim};
pub use gateway_identifies::{IdentifyTable, IdentifyWindow};
pub use outbox::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost, OutboxTable};

/// The tables of the connection to Discord: all that the front end may use of the catalog. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DiscordTables {
    pub channels: ChannelTable,
    pub claims: ClaimTable,
    pub outbox: OutboxTable,
    pub announcements: AnnouncementLog,
    pub identifies: IdentifyTable,
}

impl DiscordTables {
    pub(super) fn new(db: &CatalogDb, settings: SettingTable) -> Self {
        Self {
            channels: ChannelTable { db: db.clone() },
            claims: ClaimTable { db: db.clone() },
            outbox: OutboxTable { db: db.clone() },
            announcements: AnnouncementLog { settings },
            identifies: IdentifyTable { db: db.clone() },
        }
    }
}
