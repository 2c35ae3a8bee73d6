//! Tables of the connection to Discord, one module each. Ids are those of Discord, which grow with time.

mod announcements;
mod channels;
mod claims;
mod gateway_identifies;
mod outbox;
mod sharing;

use std::sync::Arc;

pub use announcements::{AnnouncementLog, Announcements};
pub use channels::{ChannelRow, ChannelTable};
pub use claims::{ClaimOutcome, ClaimTable, NewClaim, OpenClaim};
pub use gateway_identifies::{IdentifyTable, IdentifyWindow};
pub use outbox::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost, OutboxTable};
pub use sharing::{DiscordLease, GatewayOwners, SharedDiscord, SharedWork};

/// The tables of the connection to Discord: all that the front end may use of the catalog. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DiscordTables {
    pub channels: Arc<dyn ChannelTable>,
    pub claims: Arc<dyn ClaimTable>,
    pub outbox: Arc<dyn OutboxTable>,
    pub announcements: Arc<dyn AnnouncementLog>,
    pub identifies: Arc<dyn IdentifyTable>,
    /// `None` if this daemon has the connection alone.
    pub shared: Option<Arc<dyn SharedDiscord>>,
}
