//! Channels that agents have in Discord.

use uuid::Uuid;

use crate::failure::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::ChannelRow;

/// Notes the channel of an agent. `seen`: the newest message that is there already, which nobody answers. One that is there is
/// overwritten; how far it was read, and what is skipped, never goes back.
///
/// # Errors
/// A database that cannot be written.
pub async fn put(ops: &Ops, row: ChannelRow) -> Result<()> {
    ops.store.catalog.put_channel(row).await
}

/// Forgets a channel; false: there was none.
///
/// # Errors
/// A database that cannot be written.
pub async fn remove(ops: &Ops, channel: u64) -> Result<bool> {
    ops.store.catalog.remove_channel(channel).await
}

/// What is noted of a channel.
///
/// # Errors
/// A database that cannot be read.
pub async fn get(ops: &Ops, channel: u64) -> Result<Option<ChannelRow>> {
    ops.store.catalog.channel(channel).await
}

/// Channels of an agent.
///
/// # Errors
/// A database that cannot be read.
pub async fn of_agent(ops: &Ops, agent: Uuid) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(Some(agent)).await
}

/// All channels.
///
/// # Errors
/// A database that cannot be read.
pub async fn all(ops: &Ops) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(None).await
}

/// Notes that all messages of a channel up to this one were dealt with.
///
/// # Errors
/// A database that cannot be written.
pub async fn seen(ops: &Ops, channel: u64, message: u64) -> Result<()> {
    ops.store.catalog.seen_in_channel(channel, message).await
}
