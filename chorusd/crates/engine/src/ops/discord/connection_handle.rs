//! The interface through which operations use Discord, and the state of its connection.

use std::collections::BTreeMap;
use std::fmt::Debug;
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

/// Returns the sentence about [`ConnectionState::Elsewhere`].
#[must_use]
pub fn connected_elsewhere(node: &str) -> String {
    match node.contains(", ") {
        true => format!("the nodes {node} are connected"),
        false => format!("the node {node} is connected"),
    }
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

/// The connection of one shard.
#[derive(Debug, Clone, Default)]
struct ConnectionLink {
    state: ConnectionState,
    /// A connection is open, but its first data is still to be processed.
    is_open: bool,
    guilds: u64,
}

/// The connections.
#[derive(Debug, Default)]
struct Links {
    /// The state as long as there are no shards.
    whole: ConnectionState,
    shards: Vec<ConnectionLink>,
}

impl Links {
    fn shard(&mut self, shard: u32) -> Option<&mut ConnectionLink> {
        self.shards.get_mut(usize::try_from(shard).ok()?)
    }

    /// Returns the state of all shards: the worst, with the shard in the reason if there are several.
    fn state(&self) -> ConnectionState {
        let states = || self.shards.iter().map(|link| &link.state);
        if self.shards.is_empty() {
            return self.whole.clone();
        }
        if let Some(stopped) = states().find(|state| matches!(state, ConnectionState::Stopped { .. })) {
            return stopped.clone();
        }
        let elsewhere = states().filter_map(|state| match state {
            ConnectionState::Elsewhere { node } => Some(node.as_str()),
            _ => None,
        });
        let nodes: std::collections::BTreeSet<&str> = elsewhere.collect();
        for (number, state) in states().enumerate() {
            match state {
                ConnectionState::Waiting { until, why } if self.shards.len() > 1 => {
                    let why = format!("shard {number} of {}: {why}", self.shards.len());
                    return ConnectionState::Waiting { until: *until, why };
                }
                ConnectionState::Waiting { .. } => return state.clone(),
                _ => {}
            }
        }
        let is = |wanted: ConnectionState| states().any(|state| *state == wanted);
        let own = states().filter(|state| !matches!(state, ConnectionState::Elsewhere { .. })).count();
        match own {
            0 => ConnectionState::Elsewhere { node: nodes.into_iter().collect::<Vec<_>>().join(", ") },
            _ if is(ConnectionState::Connecting) => ConnectionState::Connecting,
            _ if is(ConnectionState::Connected) => ConnectionState::Connected,
            _ => ConnectionState::Off,
        }
    }
}

/// The state of the Discord connection, and the channel API.
#[derive(Debug, Default)]
pub struct DiscordHandle {
    links: Mutex<Links>,
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
        Self { links: Mutex::new(Links { whole: state, shards: Vec::new() }), ..Self::default() }
    }

    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.links.lock().state()
    }

    /// Sets the state of everything, for as long as there are no shards.
    pub fn set_state(&self, state: ConnectionState) {
        *self.links.lock() = Links { whole: state, shards: Vec::new() };
    }

    /// Begins to connect so many shards.
    pub fn begin_shards(&self, count: u32) {
        let link = ConnectionLink { state: ConnectionState::Connecting, ..ConnectionLink::default() };
        let count = usize::try_from(count).unwrap_or_default();
        *self.links.lock() = Links { whole: ConnectionState::Connecting, shards: vec![link; count] };
    }

    /// Returns the number of shards; 1 if there are none.
    #[must_use]
    pub fn shard_count(&self) -> u32 {
        u32::try_from(self.links.lock().shards.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Sets the state of a shard. Connected is set by [`DiscordHandle::on_guilds_loaded`] only.
    pub fn set_shard_state(&self, shard: u32, state: ConnectionState) {
        if let Some(link) = self.links.lock().shard(shard) {
            let guilds = if matches!(state, ConnectionState::Elsewhere { .. }) { 0 } else { link.guilds };
            *link = ConnectionLink { state, is_open: false, guilds };
        }
    }

    /// Records that the connection of a shard is open. It counts as connected once [`DiscordHandle::on_guilds_loaded`] is
    /// called.
    pub fn on_opened(&self, shard: u32) {
        if let Some(link) = self.links.lock().shard(shard) {
            link.is_open = true;
        }
    }

    /// Records that the first data of a connection is processed. Does nothing if another state was set since.
    pub fn on_guilds_loaded(&self, shard: u32) {
        if let Some(link) = self.links.lock().shard(shard).filter(|link| link.is_open) {
            (link.state, link.is_open) = (ConnectionState::Connected, false);
        }
    }

    /// Returns whether a shard is connected to this daemon.
    #[must_use]
    pub fn is_shard_connected(&self, shard: u32) -> bool {
        self.links.lock().shard(shard).is_some_and(|link| link.state == ConnectionState::Connected)
    }

    /// Returns whether requests to Discord can be expected to succeed: this daemon or another node is connected.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        matches!(self.state(), ConnectionState::Connected | ConnectionState::Elsewhere { .. })
    }

    /// Returns the number of guilds that Chorus is in, as far as this daemon is connected.
    #[must_use]
    pub fn guild_count(&self) -> u64 {
        self.links.lock().shards.iter().map(|link| link.guilds).sum()
    }

    /// Sets the number of guilds of a shard.
    pub fn set_guild_count(&self, shard: u32, guilds: u64) {
        if let Some(link) = self.links.lock().shard(shard) {
            link.guilds = guilds;
        }
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
        discord.begin_shards(1);
        discord.on_guilds_loaded(0);
        assert_eq!(discord.state(), ConnectionState::Connecting, "there is none");
        discord.on_opened(0);
        assert_eq!(discord.state(), ConnectionState::Connecting, "its servers are not known");
        discord.on_guilds_loaded(0);
        assert_eq!(discord.state(), ConnectionState::Connected);
        // The connection is lost before its guilds are known.
        discord.set_shard_state(0, ConnectionState::Connecting);
        discord.on_opened(0);
        discord.set_shard_state(0, ConnectionState::Connecting);
        discord.on_guilds_loaded(0);
        assert_eq!(discord.state(), ConnectionState::Connecting);
    }

    #[test]
    fn the_state_of_several_shards_is_the_worst() {
        let discord = DiscordHandle::new(true);
        discord.begin_shards(2);
        for shard in 0..2 {
            assert_eq!(discord.state(), ConnectionState::Connecting);
            discord.on_opened(shard);
            discord.on_guilds_loaded(shard);
            discord.set_guild_count(shard, 3);
        }
        assert_eq!((discord.state(), discord.guild_count()), (ConnectionState::Connected, 6));
        let elsewhere = || ConnectionState::Elsewhere { node: "b".into() };
        discord.set_shard_state(1, elsewhere());
        assert_eq!((discord.state(), discord.guild_count()), (ConnectionState::Connected, 3));
        let (until, why) = (Timestamp::UNIX_EPOCH, "it is away".to_owned());
        discord.set_shard_state(0, ConnectionState::Waiting { until, why });
        let why = "shard 0 of 2: it is away".to_owned();
        assert_eq!(discord.state(), ConnectionState::Waiting { until, why });
        discord.set_shard_state(0, elsewhere());
        assert_eq!(discord.state(), elsewhere());
    }
}
