//! Cache of threads, and of channels that turned out to be none.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::sync::RwLock;
use serenity::model::channel::{ChannelType, GuildChannel};
use serenity::model::id::{ChannelId, GuildId, MessageId};

/// Channels that are remembered as no threads; if there are more, they are forgotten.
const MAX_OTHERS: usize = 10_000;

/// A thread below a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub id: ChannelId,
    pub parent: ChannelId,
    pub guild: GuildId,
    /// `None` if only the id was recorded.
    pub name: Option<String>,
    pub last_message: Option<MessageId>,
    /// `None` if that is not known.
    pub archived: Option<bool>,
    /// Only its members and moderators see it.
    pub is_private: bool,
    /// How far it was read is recorded on disk.
    pub is_recorded: bool,
}

impl Thread {
    /// Converts a thread that Discord sent. Returns `None` if it is another kind of channel.
    pub(super) fn from_channel(channel: &GuildChannel) -> Option<Self> {
        Some(Self {
            id: channel.id,
            parent: channel.parent_id.filter(|_| is_thread(channel.kind))?,
            guild: channel.guild_id,
            name: Some(channel.name.clone()),
            last_message: channel.last_message_id,
            archived: channel.thread_metadata.as_ref().map(|metadata| metadata.archived),
            is_private: channel.kind == ChannelType::PrivateThread,
            is_recorded: false,
        })
    }
}

/// Returns whether channels of this kind are threads.
pub(super) fn is_thread(kind: ChannelType) -> bool {
    matches!(kind, ChannelType::PublicThread | ChannelType::PrivateThread | ChannelType::NewsThread)
}

/// Threads in memory. `None` stands for a channel that is no thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadCache(RwLock<HashMap<ChannelId, Option<Arc<Thread>>>>);

impl ThreadCache {
    /// Returns a thread.
    #[must_use]
    pub(crate) fn get(&self, channel: ChannelId) -> Option<Arc<Thread>> {
        self.0.read().get(&channel).cloned().flatten()
    }

    /// Returns whether it is known of a channel whether it is a thread.
    #[must_use]
    pub(crate) fn is_checked(&self, channel: ChannelId) -> bool {
        self.0.read().contains_key(&channel)
    }

    /// Returns whether a thread is known to be archived.
    #[must_use]
    pub(crate) fn is_archived(&self, channel: ChannelId) -> bool {
        self.get(channel).is_some_and(|thread| thread.archived == Some(true))
    }

    /// Returns all threads.
    #[must_use]
    pub(crate) fn all(&self) -> Vec<Arc<Thread>> {
        self.0.read().values().flatten().cloned().collect()
    }

    /// Inserts or updates a thread. Returns what was known of it before.
    pub(super) fn insert(&self, thread: Thread) -> Option<Arc<Thread>> {
        let mut cache = self.0.write();
        let before = cache.get(&thread.id).cloned().flatten();
        let is_recorded = thread.is_recorded || before.as_ref().is_some_and(|before| before.is_recorded);
        cache.insert(thread.id, Some(Arc::new(Thread { is_recorded, ..thread })));
        before
    }

    /// Records that a channel is no thread that matters.
    pub(super) fn insert_other(&self, channel: ChannelId) {
        let mut cache = self.0.write();
        if cache.len() >= MAX_OTHERS {
            cache.retain(|_, thread| thread.is_some());
        }
        cache.insert(channel, None);
    }

    /// Changes a thread that is cached.
    pub(super) fn update(&self, channel: ChannelId, change: impl FnOnce(&mut Thread)) {
        if let Some(Some(thread)) = self.0.write().get_mut(&channel) {
            change(Arc::make_mut(thread));
        }
    }

    /// Removes a thread. Returns it.
    pub(super) fn remove(&self, channel: ChannelId) -> Option<Arc<Thread>> {
        self.0.write().remove(&channel).flatten()
    }
}
