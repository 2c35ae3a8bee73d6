//! Channels that agents have in Discord.

use uuid::Uuid;

use crate::error::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::ChannelRow;

/// Notes the channel of an agent. `seen`: the newest message that is there already, which nobody answers. One that is there is
/// overwritten; how far it was read, and what is skipped, never goes back.
///
/// # Errors
/// A database that cannot be written.
pub async fn upsert(ops: &Ops, row: ChannelRow) -> Result<()> {
    ops.store.catalog.upsert_channel(row).await
}

/// Forgets a channel; false: there was none.
///
/// # Errors
/// A database that cannot be written.
pub async fn delete(ops: &Ops, channel: u64) -> Result<bool> {
    ops.store.catalog.delete_channel(channel).await
}

/// What is noted of a channel.
///
/// # Errors
/// A database that cannot be read.
pub async fn find(ops: &Ops, channel: u64) -> Result<Option<ChannelRow>> {
    ops.store.catalog.channel(channel).await
}

/// Channels of an agent.
///
/// # Errors
/// A database that cannot be read.
pub async fn list_of_agent(ops: &Ops, agent: Uuid) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(Some(agent)).await
}

/// All channels.
///
/// # Errors
/// A database that cannot be read.
pub async fn list(ops: &Ops) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(None).await
}

/// Notes that all messages of a channel up to this one were dealt with.
///
/// # Errors
/// A database that cannot be written.
pub async fn mark_seen(ops: &Ops, channel: u64, message: u64) -> Result<()> {
    ops.store.catalog.mark_channel_seen(channel, message).await
}
