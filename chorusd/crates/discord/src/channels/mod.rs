//! Channels of agents: which channel belongs to which agent, creating channels, and what happens to an agent whose
//! channel is deleted.

mod channel_api;
mod create;
mod effective_permissions;
mod guild_allowlist;
mod guild_cache;
mod other_agents;
mod restore_session_button;
mod sync;
mod welcome;

use std::sync::Arc;

use chorus_engine::KeyedMutex;
use chorus_engine::agent::agent_index::{AgentEntry, AgentIndex};
use chorus_runtime::SpawnTracked as _;
use serde::Deserialize;
use serenity::model::Permissions;
use serenity::model::channel::PermissionOverwrite;
use serenity::model::event::Event;
use serenity::model::id::{ChannelId, GuildId, RoleId, UserId};
use uuid::Uuid;

use self::effective_permissions::overwritten_permissions;
pub(crate) use self::guild_allowlist::{GuildAllowlist, learn_guilds};
use self::guild_cache::GuildCache;
use self::other_agents::OtherAgents;
use super::app::DiscordApp;
use super::direct::{DirectChannel, DirectChannels};
use super::inbound::ChannelNames;
use super::rest::{Request, RestError, Route};
use super::threads;
use super::threads::{Thread, ThreadCache};
pub(crate) use channel_api::DiscordChannels;
pub(crate) use restore_session_button::{restore_button_id as restore_button, restore_session};

/// The channels of agents. All state is in memory.
#[derive(Debug)]
pub(crate) struct AgentChannels {
    directory: Arc<AgentIndex>,
    guild_cache: GuildCache,
    /// The agents of other nodes.
    pub others: OtherAgents,
    pub allowlist: GuildAllowlist,
    pub threads: ThreadCache,
    pub direct: DirectChannels,
    /// The name of the agent that answers direct messages.
    dm_agent: Option<String>,
    /// Lets one task at a time open or close a thread's conversation.
    pub thread_locks: KeyedMutex<Uuid>,
    /// Only one channel is created at a time, so that the category is not created twice.
    create_lock: tokio::sync::Mutex<()>,
}

/// The place at which something was said to an agent.
#[derive(Debug, Clone)]
pub(crate) struct ChannelTarget {
    pub agent: Arc<AgentEntry>,
    /// The thread below the agent's channel.
    pub thread: Option<Arc<Thread>>,
    /// The direct messages; with neither it is the agent's channel itself.
    pub direct: Option<Arc<DirectChannel>>,
}

impl AgentChannels {
    #[must_use]
    pub(crate) fn new(directory: Arc<AgentIndex>, allowlist: GuildAllowlist, dm_agent: Option<String>) -> Self {
        Self {
            directory,
            guild_cache: GuildCache::default(),
            others: OtherAgents::default(),
            allowlist,
            threads: ThreadCache::default(),
            direct: DirectChannels::default(),
            dm_agent,
            thread_locks: KeyedMutex::default(),
            create_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the agent that a channel belongs to.
    #[must_use]
    pub(crate) fn agent_of(&self, channel: ChannelId) -> Option<Arc<AgentEntry>> {
        self.directory.by_channel(channel.get()).or_else(|| self.others.by_channel(channel.get()))
    }

    /// Returns the agent that answers direct messages.
    #[must_use]
    pub(crate) fn direct_agent(&self) -> Option<Arc<AgentEntry>> {
        let name = self.dm_agent.as_deref()?;
        self.directory.by_name(name).or_else(|| self.others.by_name(name))
    }

    /// Returns the agent that a channel, a thread below it or direct messages belong to.
    #[must_use]
    pub(crate) fn target_of(&self, channel: ChannelId) -> Option<ChannelTarget> {
        if let Some(agent) = self.agent_of(channel) {
            return Some(ChannelTarget { agent, thread: None, direct: None });
        }
        if let Some(direct) = self.direct.get(channel) {
            return Some(ChannelTarget { agent: self.direct_agent()?, thread: None, direct: Some(direct) });
        }
        let thread = self.threads.get(channel).filter(|thread| self.serves(thread.guild))?;
        Some(ChannelTarget { agent: self.agent_of(thread.parent)?, thread: Some(thread), direct: None })
    }

    /// Returns whether a channel is neither one of a guild nor checked, so that it may be a thread.
    #[must_use]
    pub(crate) fn may_be_thread(&self, channel: ChannelId) -> bool {
        self.guild_cache.guild_of(channel).is_none() && !self.threads.is_checked(channel)
    }

    /// Returns the channel whose permissions apply: for a thread the one that it is below.
    fn permission_channel(&self, channel: ChannelId) -> ChannelId {
        self.threads.get(channel).map_or(channel, |thread| thread.parent)
    }

    /// Returns the channel of an agent, and its guild as far as it is known. Returns `None` if that guild is not
    /// allowed any more.
    #[must_use]
    pub(crate) fn channel_of(&self, agent: Uuid) -> Option<(ChannelId, Option<GuildId>)> {
        let entry = self.directory.by_id(agent).or_else(|| self.others.by_id(agent))?;
        let channel = ChannelId::new(entry.channel()?);
        // The channel belongs to another agent that names it, too.
        if self.agent_of(channel)?.settings.id != agent {
            return None;
        }
        let noted = entry.guild_id.as_ref().and_then(|id| id.parse().ok()).filter(|id: &u64| *id != 0);
        let guild = noted.map(GuildId::new).or_else(|| self.guild_cache.guild_of(channel));
        guild.is_none_or(|guild| self.serves(guild)).then_some((channel, guild))
    }

    /// Returns whether Chorus may read the history of a channel; true if that is not known.
    #[must_use]
    pub(crate) fn may_read_history(&self, channel: ChannelId) -> bool {
        self.guild_cache
            .has_permissions(
                self.permission_channel(channel),
                Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY,
            )
            .unwrap_or(true)
    }

    /// Returns which permissions for threads below a channel Chorus lacks; `None` if it has them or that is not known.
    #[must_use]
    pub(crate) fn thread_problem(&self, channel: ChannelId) -> Option<String> {
        self.guild_cache.thread_problem(channel)
    }

    /// Returns the owner of a guild, if known.
    #[must_use]
    pub(crate) fn owner_of(&self, guild: GuildId) -> Option<UserId> {
        self.guild_cache.owner_of(guild)
    }

    /// Returns the id of Chorus's own user; `None` before the first connection.
    #[must_use]
    pub(crate) fn own_user_id(&self) -> Option<UserId> {
        self.guild_cache.own_user_id()
    }

    /// Returns the permissions of a member with these roles in a channel; `None` if not known.
    #[must_use]
    pub(crate) fn permissions_of(&self, channel: ChannelId, user: UserId, roles: &[RoleId]) -> Option<Permissions> {
        self.guild_cache.permissions_of(channel, user, roles)
    }

    /// Requests the permissions of a member with these roles in a channel of a guild that another node is told of.
    pub(crate) async fn fetch_permissions_of(
        &self,
        app: &DiscordApp,
        (guild_id, channel_id): (GuildId, ChannelId),
        user: UserId,
        roles: &[RoleId],
    ) -> Result<Permissions, RestError> {
        #[derive(Deserialize)]
        struct FoundGuild {
            owner_id: UserId,
        }
        #[derive(Deserialize)]
        struct FoundChannel {
            permission_overwrites: Vec<PermissionOverwrite>,
        }
        let guild: FoundGuild = app.rest.call(Request::get(Route::Guild { guild_id })).await?;
        if guild.owner_id == user {
            return Ok(Permissions::all());
        }
        let channel: FoundChannel = app.rest.call(Request::get(Route::Channel { channel_id })).await?;
        app.roles.ensure_loaded(app, guild_id).await?;
        let base = app.roles.permissions(guild_id, roles);
        Ok(overwritten_permissions(base, guild_id, &channel.permission_overwrites, user, roles))
    }

    /// Returns whether everybody who sees a channel may change its conversation, as far as roles tell.
    #[must_use]
    pub(crate) fn all_may_change(&self, channel: ChannelId, approvers: &[String]) -> bool {
        if self.direct.get(channel).is_some() {
            return true;
        }
        self.guild_cache.all_members_have(self.permission_channel(channel), Permissions::MANAGE_MESSAGES, |role| {
            approvers.iter().any(|named| *named == role.name || *named == role.id.to_string())
        })
    }

    /// Returns the guild of a channel, a thread or direct messages, as far as it is known: direct messages have none.
    #[must_use]
    pub(crate) fn guild_of(&self, channel: ChannelId) -> Option<Option<GuildId>> {
        if self.direct.get(channel).is_some() {
            return Some(None);
        }
        if let Some(thread) = self.threads.get(channel) {
            return Some(Some(thread.guild));
        }
        let of_agent = || self.channel_of(self.agent_of(channel)?.settings.id)?.1;
        self.guild_cache.guild_of(channel).or_else(of_agent).map(Some)
    }

    /// Forgets what is only known of the guilds of a shard that this process has.
    pub(crate) fn forget_shard(&self, shard: u32, count: u32) {
        self.guild_cache.forget_shard(shard, count);
    }

    /// Returns whether a guild is allowed.
    #[must_use]
    pub(crate) fn serves(&self, guild: GuildId) -> bool {
        self.allowlist.contains(guild)
    }

    /// Returns whether it is the only guild that is allowed.
    #[must_use]
    pub(crate) fn serves_only(&self, guild: GuildId) -> bool {
        self.allowlist.all() == [guild]
    }
}

impl ChannelNames for AgentChannels {
    fn channel_name(&self, channel: u64) -> Option<String> {
        let channel = ChannelId::new(channel.max(1));
        let of_thread = || self.threads.get(channel).and_then(|thread| thread.name.clone());
        self.guild_cache.name_of(channel).or_else(of_thread)
    }
}

/// Handles a new connection. A resumed session sends no guilds, so the channels and guilds are requested.
pub(crate) fn on_connected(app: &Arc<DiscordApp>, shard: u32, resumed: bool) {
    let is_of_shard = |guild: &GuildId| app.shards.of(Some(*guild)) == shard;
    if resumed && !app.channels.guild_cache.guild_ids().iter().any(is_of_shard) {
        app.tasks.spawn_tracked(guild_allowlist::refresh_after_resume(app.clone()));
        app.tasks.spawn_tracked(sync::sync_all(app.clone()));
    }
}

/// Updates the caches from a gateway event. Does not block.
pub(crate) fn handle_event(app: &Arc<DiscordApp>, event: &Event) {
    let rooms = &app.channels;
    rooms.allowlist.handle_event(event);
    if let Some(guild) = rooms.guild_cache.apply(event, |guild| rooms.serves(guild)) {
        app.tasks.spawn_tracked(sync::sync_guild(app.clone(), guild));
    }
    threads::handle_event(app, event);
    match event {
        Event::ChannelDelete(event) => {
            app.tasks.spawn_tracked(sync::on_channel_deleted(app.ops.clone(), event.channel.id));
        }
        Event::GuildDelete(event) if !event.guild.unavailable && rooms.serves(event.guild.id) => {
            tracing::warn!(guild = %event.guild.id, "Chorus was removed from a server; its agents there no longer receive messages");
        }
        _ => {}
    }
}
