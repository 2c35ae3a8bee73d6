//! Discord as verbs see it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use uuid::Uuid;

use super::{NewPost, guild_allowlist};
use crate::agent::agent_index::AgentEntry;
use crate::error::Result;

/// How the connection stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// There is no token, or the daemon stops.
    #[default]
    Off,
    /// Until what a connection tells first is taken in.
    Connecting,
    Connected,
    /// It tries again at this time.
    Waiting {
        until: Timestamp,
        why: String,
    },
    /// It does not try again before a restart; `hint` is what a person can do.
    Stopped {
        why: String,
        hint: String,
    },
}

/// A channel that was made for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedChannel {
    pub channel: u64,
    pub guild: u64,
}

/// What comes of making a channel, where nothing went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    Created(CreatedChannel),
    /// Not connected, or it is open which server is meant: why, as a person reads it.
    Skipped(String),
}

/// A channel that an agent can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelInfo {
    pub guild: u64,
    /// The newest message in it, or its own id before the first.
    pub newest_message: u64,
}

/// What verbs ask of Discord, where it is there.
pub trait ChannelApi: Debug + Send + Sync {
    /// Makes a channel for an agent that is about to be made, in `guild` or the only one there is; `prompt` is its system prompt.
    fn create_channel(
        &self,
        name: String,
        prompt: Option<String>,
        guild: Option<u64>,
    ) -> BoxFuture<'_, Result<CreateOutcome>>;
    /// Deletes a channel that Chorus made; nothing where it is gone already.
    fn delete_channel(&self, channel: u64) -> BoxFuture<'_, Result<()>>;
    /// Looks whether an agent can have a channel. `None`: not connected, so that nobody can tell.
    fn find_channel(&self, channel: u64) -> BoxFuture<'_, Result<Option<ChannelInfo>>>;
    /// Why an agent cannot use this channel, as far as Discord told; `None`: nothing is known against it.
    fn unusable_reason(&self, channel: u64) -> Option<String>;
    /// What is posted first in the channel of a new agent.
    ///
    /// # Errors
    /// None that is expected.
    fn welcome_post(&self, agent: &AgentEntry, channel: u64) -> Result<NewPost>;
    /// A line that is said in a channel of an agent.
    ///
    /// # Errors
    /// None that is expected.
    fn line_post(&self, channel: u64, text: &str) -> Result<NewPost>;
    /// Something waits in the outbox for a channel.
    fn wake_outbox(&self, channel: u64);
    /// An agent has another channel or none, or is there again: what is noted of it follows, in the background.
    fn sync_agent_channel(&self, agent: Uuid);
    /// Gives a channel the name that its agent has now, in the background, where Discord takes it.
    fn rename_channel(&self, channel: u64, name: String);
}

#[derive(Debug, Default)]
struct ConnectionLink {
    state: ConnectionState,
    /// There is a connection, and what it told first is still to be taken in.
    is_open: bool,
}

/// How Discord stands, and what verbs ask of it.
#[derive(Debug, Default)]
pub struct DiscordHandle {
    link: Mutex<ConnectionLink>,
    guilds: AtomicU64,
    /// Servers that it was invited to and does not serve, with their names as far as they are known.
    unserved_guilds: Mutex<BTreeMap<u64, Option<String>>>,
    /// Channels whose posts Discord does not take now: why.
    blocked_posts: Mutex<BTreeMap<u64, String>>,
    pub channel_api: OnceLock<Arc<dyn ChannelApi>>,
}

impl DiscordHandle {
    /// `wanted`: there is a token to connect with.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        let state = if wanted { ConnectionState::Connecting } else { ConnectionState::Off };
        Self { link: Mutex::new(ConnectionLink { state, is_open: false }), ..Self::default() }
    }

    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.lock_link().state.clone()
    }

    /// How the connection stands from now on. That it is there is for [`Discord::taken_in`] to say.
    pub fn set_state(&self, state: ConnectionState) {
        *self.lock_link() = ConnectionLink { state, is_open: false };
    }

    /// There is a connection. It is one for verbs once [`Discord::taken_in`] says that its servers are known.
    pub fn on_opened(&self) {
        self.lock_link().is_open = true;
    }

    /// What a connection told first is taken in. Nothing where another state was set since.
    pub fn on_guilds_loaded(&self) {
        let mut link = self.lock_link();
        if link.is_open {
            *link = ConnectionLink { state: ConnectionState::Connected, is_open: false };
        }
    }

    fn lock_link(&self) -> MutexGuard<'_, ConnectionLink> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers that it is in.
    #[must_use]
    pub fn guild_count(&self) -> u64 {
        self.guilds.load(Ordering::Relaxed)
    }

    pub fn set_guild_count(&self, guilds: u64) {
        self.guilds.store(guilds, Ordering::Relaxed);
    }

    /// Notes why posts for a channel wait; `None`: none does.
    pub fn set_post_block(&self, channel: u64, why: Option<String>) {
        let mut waiting = self.blocked_posts.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => waiting.insert(channel, why),
            None => waiting.remove(&channel),
        };
    }

    /// Channels that posts wait for, and why.
    #[must_use]
    pub fn blocked_posts(&self) -> Vec<(u64, String)> {
        let waiting = self.blocked_posts.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().map(|(channel, why)| (*channel, why.clone())).collect()
    }

    /// Servers that it was invited to and does not serve, each as a person reads it.
    #[must_use]
    pub fn unserved_guilds(&self) -> Vec<String> {
        let strangers = self.unserved_guilds.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.iter().map(|(id, name)| guild_allowlist::describe_unserved(*id, name.as_deref())).collect()
    }

    /// Changes which those are.
    pub fn with_unserved_guilds<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, Option<String>>) -> T) -> T {
        change(&mut self.unserved_guilds.lock().unwrap_or_else(PoisonError::into_inner))
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
        // One that goes before they are.
        discord.set_state(ConnectionState::Connecting);
        discord.on_opened();
        discord.set_state(ConnectionState::Connecting);
        discord.on_guilds_loaded();
        assert_eq!(discord.state(), ConnectionState::Connecting);
    }
}
