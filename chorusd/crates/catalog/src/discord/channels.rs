//! Discord channels of agents, the threads below them and channels of direct messages, and how far each was read.

use std::fmt::Debug;

use uuid::Uuid;

use super::NewPost;
use crate::{AgentRow, CatalogRead, CatalogWrite};

/// A row of the table of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRow {
    pub channel: u64,
    /// 0 for direct messages.
    pub guild: u64,
    pub agent: Uuid,
    /// True if Chorus created the channel and so may delete it.
    pub created_by_us: bool,
    /// All messages up to this one were processed.
    pub seen: u64,
    /// Messages up to this one are never claimed: they are older than the agent's connection to the channel, or were
    /// skipped.
    pub skipped: u64,
    /// The channel that a thread is below; `None` for a channel.
    pub parent: Option<u64>,
    /// The person of a channel of direct messages; `None` for channels of guilds.
    pub user: Option<u64>,
}

/// The table of the channels of agents.
pub trait ChannelTable: Debug + Send + Sync {
    /// Inserts or updates the channel of an agent; `seen` and `skipped` never decrease.
    fn upsert(&self, row: ChannelRow) -> CatalogWrite<()>;

    /// Inserts or updates an agent with its channel, and queues the welcome post, in one commit.
    fn upsert_with_agent(&self, agent: AgentRow, channel: ChannelRow, welcome: NewPost) -> CatalogWrite<()>;

    /// Deletes the row of a channel or thread, and those of the threads below it; returns false if there was none.
    fn delete(&self, channel: u64) -> CatalogWrite<bool>;

    /// Records that all messages of a channel up to `message` were processed.
    fn mark_seen(&self, channel: u64, message: u64) -> CatalogWrite<()>;

    /// Returns the row of a channel.
    fn get(&self, channel: u64) -> CatalogRead<'_, Option<ChannelRow>>;

    /// Returns the id above which the threads below a channel are newer than its row, which is the id that Discord would have
    /// given when the row was inserted; `None` if the channel has no row.
    fn threads_after(&self, channel: u64) -> CatalogRead<'_, Option<u64>>;

    /// Lists the channels of an agent, or of all agents, without threads and direct messages, by id.
    fn list(&self, agent: Option<Uuid>) -> CatalogRead<'_, Vec<ChannelRow>>;

    /// Lists the threads of all agents, by id.
    fn list_threads(&self) -> CatalogRead<'_, Vec<ChannelRow>>;

    /// Lists the channels of direct messages of all agents, by id.
    fn list_direct(&self) -> CatalogRead<'_, Vec<ChannelRow>>;
}
