//! The Discord channels of agents.

use chorus_base::error::Result;
pub use chorus_store::catalog::discord::ChannelRow;
use uuid::Uuid;

use crate::ops::Ops;

/// Stores the channel of an agent, or overwrites its row. `seen` is the newest message that exists already and will not
/// be answered. The read position and the skipped range of an existing row never move back.
pub async fn upsert(ops: &Ops, row: ChannelRow) -> Result<()> {
    ops.store.catalog.upsert_channel(row).await
}

/// Deletes a channel's row; returns false if there was none.
pub async fn delete(ops: &Ops, channel: u64) -> Result<bool> {
    ops.store.catalog.delete_channel(channel).await
}

/// Returns the row of a channel.
pub async fn find(ops: &Ops, channel: u64) -> Result<Option<ChannelRow>> {
    ops.store.catalog.channel(channel).await
}

/// Returns the channels of an agent.
pub async fn list_of_agent(ops: &Ops, agent: Uuid) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(Some(agent)).await
}

/// Returns all channels.
pub async fn list(ops: &Ops) -> Result<Vec<ChannelRow>> {
    ops.store.catalog.channels(None).await
}

/// Records that all messages of a channel up to this one have been handled.
pub async fn mark_seen(ops: &Ops, channel: u64, message: u64) -> Result<()> {
    ops.store.catalog.mark_channel_seen(channel, message).await
}
