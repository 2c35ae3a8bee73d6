//! Operations for the Discord connection: its rows in the catalog, and the interface through which other operations use
//! it.

pub mod announcements;
mod channel_api;
pub mod channels;
pub mod claims;
pub mod command_support;
pub mod delivery_problems;
pub mod gateway_session;
pub mod guild_allowlist;
pub mod identify_budget;
pub mod outbox;

pub use chorus_store::catalog::discord::outbox::NewPost;

pub use channel_api::{ChannelApi, ChannelInfo, ConnectionState, CreateOutcome, CreatedChannel, DiscordHandle};
pub use claims::finish_claim;
