//! The interface through which operations use Discord, and the state of its connection.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use uuid::Uuid;

use super::{NewPost, guild_allowlist};
use crate::agent::agent_index::AgentEntry;

/// The state of the Discord connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// No token is configured, or the daemon is stopping.
    #[default]
    Off,
    /// Until the first data of a connection is processed.
    Connecting,
    Connected,
    /// Another node of the cluster has the connection, which is taken over if that node ends.
    Elsewhere {
        node: String,
    },
    /// The connection is retried at this time.
    Waiting {
        until: Timestamp,
        why: String,
    },
    /// The connection is not retried before a restart; `hint` is what a person can do.
    Stopped {
        why: String,
        hint: String,
    },
}

/// A channel that was created for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedChannel {
    pub channel: u64,
    pub guild: u64,
}

/// The outcome of creating a channel, unless it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    Created(CreatedChannel),
    /// Not connected, or the server is ambiguous; the reason in words for a person.
    Skipped(String),
}

/// A channel that an agent can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelInfo {
    pub guild: u64,
    /// The newest message in it, or the channel's own id if it has none.
    pub newest_message: u64,
}

/// The Discord operations that other operations can request.
pub trait ChannelApi: Debug + Send + Sync {
    /// Creates a channel for an agent that is about to be created, in `guild` or in the only server. `prompt` is the
    /// agent's system prompt.
    fn create_channel(
        &self,
        name: String,
        prompt: Option<String>,
        guild: Option<u64>,
    ) -> BoxFuture<'_, Result<CreateOutcome>>;
    /// Deletes a channel that Chorus created; does nothing if it does not exist any more.
    fn delete_channel(&self, channel: u64) -> BoxFuture<'_, Result<()>>;
    /// Checks whether an agent can have a channel. Returns `None` if not connected.
    fn find_channel(&self, channel: u64) -> BoxFuture<'_, Result<Option<ChannelInfo>>>;
    /// Returns the reason why an agent cannot use this channel, as far as known.
    fn unusable_reason(&self, channel: u64) -> Option<String>;
    /// Returns what keeps Chorus from working in threads below this channel, as far as known.
    fn thread_problem(&self, channel: u64) -> Option<String>;
    /// Builds the first post in the channel of a new agent.
    fn welcome_post(&self, agent: &AgentEntry, channel: u64) -> Result<NewPost>;
    /// Builds a post with one line of text for a channel.
    fn line_post(&self, channel: u64, text: &str) -> Result<NewPost>;
    /// Wakes the outbox, which has a post for this channel.
    fn wake_outbox(&self, channel: u64);
    /// Syncs the row of an agent's channel in the background, because the agent has another channel or none, or was
    /// revived.
    fn sync_agent_channel(&self, agent: Uuid);
    /// Renames a channel after its agent in the background, if Discord accepts that.
    fn rename_channel(&self, channel: u64, name: String);
}

#[derive(Debug, Default)]
struct ConnectionLink {
    state: ConnectionState,
    /// A connection is open, but its first data is still to be processed.
    is_open: bool,
}

/// The state of the Discord connection, and the channel API.
#[derive(Debug, Default)]
pub struct DiscordHandle {
    link: Mutex<ConnectionLink>,
    guilds: AtomicU64,
    /// Guilds that invited Chorus but are not on the allowlist, with their names as far as known.
    unserved_guilds: Mutex<BTreeMap<u64, Option<String>>>,
    /// Channels whose posts Discord does not accept now, with the reason.
    blocked_posts: Mutex<BTreeMap<u64, String>>,
    pub channel_api: OnceLock<Arc<dyn ChannelApi>>,
}

impl DiscordHandle {
    /// Creates the state; `wanted` is true if a token is configured.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        let state = if wanted { ConnectionState::Connecting } else { ConnectionState::Off };
        Self { link: Mutex::new(ConnectionLink { state, is_open: false }), ..Self::default() }
    }

    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.link.lock().state.clone()
    }

    /// Sets the state. Connected is set by [`DiscordHandle::on_guilds_loaded`] only.
    pub fn set_state(&self, state: ConnectionState) {
        *self.link.lock() = ConnectionLink { state, is_open: false };
    }

    /// Records that a connection is open. It counts as connected once [`DiscordHandle::on_guilds_loaded`] is called.
    pub fn on_opened(&self) {
        self.link.lock().is_open = true;
    }

    /// Records that the first data of the connection is processed. Does nothing if another state was set since.
    pub fn on_guilds_loaded(&self) {
        let mut link = self.link.lock();
        if link.is_open {
            *link = ConnectionLink { state: ConnectionState::Connected, is_open: false };
        }
    }

    /// Returns whether requests to Discord can be expected to succeed: this daemon or another node is connected.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        matches!(self.state(), ConnectionState::Connected | ConnectionState::Elsewhere { .. })
    }

    /// Returns the number of guilds that Chorus is in.
    #[must_use]
    pub fn guild_count(&self) -> u64 {
        self.guilds.load(Ordering::Relaxed)
    }

    pub fn set_guild_count(&self, guilds: u64) {
        self.guilds.store(guilds, Ordering::Relaxed);
    }

    /// Records why posts for a channel wait; `None` if none waits.
    pub fn set_post_block(&self, channel: u64, why: Option<String>) {
        let mut waiting = self.blocked_posts.lock();
        match why {
            Some(why) => waiting.insert(channel, why),
            None => waiting.remove(&channel),
        };
    }

    /// Returns the channels that posts wait for, with the reason.
    #[must_use]
    pub fn blocked_posts(&self) -> Vec<(u64, String)> {
        let waiting = self.blocked_posts.lock();
        waiting.iter().map(|(channel, why)| (*channel, why.clone())).collect()
    }

    /// Returns descriptions of the guilds that invited Chorus but are not served.
    #[must_use]
    pub fn unserved_guilds(&self) -> Vec<String> {
        let strangers = self.unserved_guilds.lock();
        strangers.iter().map(|(id, name)| guild_allowlist::describe_unserved(*id, name.as_deref())).collect()
    }

    /// Changes the set of those guilds.
    pub fn with_unserved_guilds<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, Option<String>>) -> T) -> T {
        change(&mut self.unserved_guilds.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_one_when_its_servers_are_known_and_it_is_still_there() {
        let discord = DiscordHandle::new(true);
        discord.on_guilds_loaded();
        assert_eq!(discord.state(), ConnectionState::Connecting, "there is none");
        discord.on_opened();
        assert_eq!(discord.state(), ConnectionState::Connecting, "its servers are not known");
        discord.on_guilds_loaded();
        assert_eq!(discord.state(), ConnectionState::Connected);
        // The connection is lost before its guilds are known.
        discord.set_state(ConnectionState::Connecting);
        discord.on_opened();
        discord.set_state(ConnectionState::Connecting);
        discord.on_guilds_loaded();
        assert_eq!(discord.state(), ConnectionState::Connecting);
    }
}
