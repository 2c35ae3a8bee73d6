//! Cache of the channels of direct messages.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::Ticks;
use chorus_base::sync::{Mutex, RwLock};
use serenity::model::id::{ChannelId, UserId};
use uuid::Uuid;

use super::access::{Access, MAX_ACCESS_AGE};

/// Channels of people who may not write to the agent that are remembered; if there are more, they are forgotten.
const MAX_UNRECORDED: usize = 10_000;

/// A channel of direct messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectChannel {
    pub id: ChannelId,
    pub user: UserId,
    /// The name of the person; `None` until they write.
    pub name: Option<String>,
    /// How far it was read is recorded on disk.
    pub is_recorded: bool,
}

/// Channels of direct messages in memory, and who may write in them.
#[derive(Debug, Default)]
pub(crate) struct DirectChannels {
    channels: RwLock<HashMap<ChannelId, Arc<DirectChannel>>>,
    /// The last results of checks for an agent, and when they were made.
    access: Mutex<HashMap<(Uuid, UserId), (Ticks, Access)>>,
}

impl DirectChannels {
    /// Returns a channel of direct messages.
    #[must_use]
    pub(crate) fn get(&self, channel: ChannelId) -> Option<Arc<DirectChannel>> {
        self.channels.read().get(&channel).cloned()
    }

    /// Returns the channel of the direct messages with a person.
    #[must_use]
    pub(crate) fn channel_with(&self, user: UserId) -> Option<ChannelId> {
        self.channels.read().values().find(|channel| channel.user == user).map(|channel| channel.id)
    }

    /// Returns the channels of people who have written to the agent.
    #[must_use]
    pub(crate) fn recorded(&self) -> Vec<ChannelId> {
        self.channels.read().values().filter(|channel| channel.is_recorded).map(|channel| channel.id).collect()
    }

    /// Inserts or updates a channel.
    pub(super) fn insert(&self, channel: DirectChannel) {
        let mut channels = self.channels.write();
        if channels.len() >= MAX_UNRECORDED && !channels.contains_key(&channel.id) {
            channels.retain(|_, known| known.is_recorded);
        }
        let is_recorded = channel.is_recorded || channels.get(&channel.id).is_some_and(|known| known.is_recorded);
        channels.insert(channel.id, Arc::new(DirectChannel { is_recorded, ..channel }));
    }

    /// Records that a channel is recorded on disk.
    pub(super) fn mark_recorded(&self, channel: ChannelId) {
        if let Some(known) = self.channels.write().get_mut(&channel) {
            Arc::make_mut(known).is_recorded = true;
        }
    }

    /// Returns the result of a check that is not too old.
    pub(super) fn cached_access(&self, agent: Uuid, user: UserId, now: Ticks) -> Option<Access> {
        let access = self.access.lock();
        access.get(&(agent, user)).filter(|(at, _)| now.since(*at) < MAX_ACCESS_AGE).map(|(_, access)| access.clone())
    }

    /// Remembers the result of a check.
    pub(super) fn cache_access(&self, agent: Uuid, user: UserId, now: Ticks, access: Access) {
        let mut all = self.access.lock();
        all.retain(|_, (at, _)| now.since(*at) < MAX_ACCESS_AGE);
        all.insert((agent, user), (now, access));
    }
}
