//! Operations for the Discord connection, its tables, and the interface through which other operations use it.

pub mod command_support;
mod connection_handle;
pub mod delivery_problems;
pub mod gateway_session;
pub mod guild_allowlist;
pub mod identify_budget;
pub mod workspace_file;

pub use chorus_catalog::discord::{
    Announcements, ChannelRow, ClaimOutcome, DiscordLease, DiscordTables, DuePost, GatewayOwners, MAX_NOTICE_AGE,
    NewClaim, NewPost, OpenClaim, OutboxTable, SharedDiscord, SharedWork,
};
pub use chorus_journal::Claim as LeaseClaim;

use super::Ops;
pub use connection_handle::{
    ChannelApi, ChannelInfo, ConnectionState, CreateOutcome, CreatedChannel, DiscordHandle, connected_elsewhere,
};

impl Ops {
    /// Returns the tables of the Discord front end, which uses nothing else of the store.
    #[must_use]
    pub fn discord_tables(&self) -> DiscordTables {
        self.store.catalog.discord.clone()
    }
}
