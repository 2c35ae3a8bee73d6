//! Channels of agents: which is whose, making them, and what becomes of an agent whose channel goes.

mod channel_api;
mod create;
mod guild_allowlist;
mod guild_cache;
mod restore_button;
mod sync;
mod welcome;

use std::sync::Arc;

pub use channel_api::DiscordChannels;
pub use restore_button::{restore_button_id as restore_button, restore_session};
use serenity::model::Permissions;
use serenity::model::event::Event;
use serenity::model::id::{ChannelId, GuildId, UserId};
use uuid::Uuid;

pub use self::guild_allowlist::GuildAllowlist;
use self::guild_cache::GuildCache;
use super::app::DiscordApp;
use super::inbound::ChannelNames;
use crate::agent::agent_index::{AgentEntry, AgentIndex};

/// Channels of agents. All of it is in memory.
#[derive(Debug)]
pub struct AgentChannels {
    directory: Arc<AgentIndex>,
    guild_cache: GuildCache,
    pub allowlist: GuildAllowlist,
    /// One channel is made at a time, so that two do not both make the category.
    create_lock: tokio::sync::Mutex<()>,
}

impl AgentChannels {
    #[must_use]
    pub fn new(directory: Arc<AgentIndex>, allowlist: GuildAllowlist) -> Self {
        Self { directory, guild_cache: GuildCache::default(), allowlist, create_lock: tokio::sync::Mutex::default() }
    }

    /// The agent whose channel this is.
    #[must_use]
    pub fn agent_of(&self, channel: ChannelId) -> Option<Arc<AgentEntry>> {
        self.directory.by_channel(channel.get())
    }

    /// Where an agent is talked to; the server as far as it is known. `None` where that is not served any more.
    #[must_use]
    pub fn channel_of(&self, agent: Uuid) -> Option<(ChannelId, Option<GuildId>)> {
        let entry = self.directory.by_id(agent)?;
        let channel = ChannelId::new(entry.channel()?);
        // Another agent may name it, too: it is that one's.
        if self.directory.by_channel(channel.get())?.settings.id != agent {
            return None;
        }
        let noted = entry.guild_id.as_ref().and_then(|id| id.parse().ok()).filter(|id: &u64| *id != 0);
        let guild = noted.map(GuildId::new).or_else(|| self.guild_cache.guild_of(channel));
        guild.is_none_or(|guild| self.serves(guild)).then_some((channel, guild))
    }

    /// Whether Chorus may read what was written in a channel, as far as that is known.
    #[must_use]
    pub fn may_read_history(&self, channel: ChannelId) -> bool {
        self.guild_cache
            .has_permissions(channel, Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY)
            .unwrap_or(true)
    }

    /// Who owns a server, as far as that is known.
    #[must_use]
    pub fn owner_of(&self, guild: GuildId) -> Option<UserId> {
        self.guild_cache.owner_of(guild)
    }

    /// Whether a channel is one that a server was told to have. Threads are not among those.
    #[must_use]
    pub fn is_known(&self, channel: ChannelId) -> bool {
        self.guild_cache.guild_of(channel).is_some()
    }

    /// Chorus itself; nobody before the first connection.
    #[must_use]
    pub fn own_user_id(&self) -> Option<UserId> {
        self.guild_cache.own_user_id()
    }

    /// Whether everybody who sees a channel may change the conversation in it, as far as roles tell.
    #[must_use]
    pub fn all_may_change(&self, channel: ChannelId, approvers: &[String]) -> bool {
        self.guild_cache.all_members_have(channel, Permissions::MANAGE_MESSAGES, |role| {
            approvers.iter().any(|named| *named == role.name || *named == role.id.to_string())
        })
    }

    /// Whether a server is served.
    #[must_use]
    pub fn serves(&self, guild: GuildId) -> bool {
        self.allowlist.contains(guild)
    }

    /// Whether it is the only one that is.
    #[must_use]
    pub fn serves_only(&self, guild: GuildId) -> bool {
        self.allowlist.all() == [guild]
    }
}

impl ChannelNames for AgentChannels {
    fn channel_name(&self, channel: u64) -> Option<String> {
        self.guild_cache.name_of(ChannelId::new(channel.max(1)))
    }
}

/// A connection is there. One that was taken up again tells of no servers.
pub fn on_connected(bridge: &Arc<DiscordApp>, resumed: bool) {
    if resumed && bridge.channels.guild_cache.guild_ids().is_empty() {
        bridge.tasks.spawn(guild_allowlist::refresh_after_resume(bridge.clone()));
        bridge.tasks.spawn(sync::sync_all(bridge.clone()));
    }
}

/// Takes in what the gateway tells of servers and channels. Waits for nothing.
pub fn handle_event(bridge: &Arc<DiscordApp>, event: &Event) {
    let rooms = &bridge.channels;
    rooms.allowlist.handle_event(event);
    if let Some(guild) = rooms.guild_cache.apply(event, |guild| rooms.serves(guild)) {
        bridge.tasks.spawn(sync::sync_guild(bridge.clone(), guild));
    }
    match event {
        Event::ChannelDelete(event) => {
            bridge.tasks.spawn(sync::on_channel_deleted(bridge.clone(), event.channel.id));
        }
        Event::GuildDelete(event) if !event.guild.unavailable && rooms.serves(event.guild.id) => {
            tracing::warn!(guild = %event.guild.id, "Chorus was removed from a server; its agents there hear nobody");
        }
        _ => {}
    }
}
