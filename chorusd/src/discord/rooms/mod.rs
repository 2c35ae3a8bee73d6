//! Channels of agents: which is whose, making them, and what becomes of an agent whose channel goes.

mod door;
mod follow;
mod guilds;
mod make;
mod restore;
mod served;
mod welcome;

use std::sync::Arc;

pub use door::Door;
pub use restore::{button as restore_button, restore};
use serenity::model::Permissions;
use serenity::model::event::Event;
use serenity::model::id::{ChannelId, GuildId, UserId};
use uuid::Uuid;

use self::guilds::Guilds;
pub use self::served::Served;
use super::bridge::Bridge;
use super::inbound::Channels;
use crate::agent::directory::{Directory, Entry};

/// Channels of agents. All of it is in memory.
#[derive(Debug)]
pub struct Rooms {
    directory: Arc<Directory>,
    guilds: Guilds,
    pub served: Served,
    /// One channel is made at a time, so that two do not both make the category.
    making: tokio::sync::Mutex<()>,
}

impl Rooms {
    #[must_use]
    pub fn new(directory: Arc<Directory>, served: Served) -> Self {
        Self { directory, guilds: Guilds::default(), served, making: tokio::sync::Mutex::default() }
    }

    /// The agent whose channel this is.
    #[must_use]
    pub fn agent_of(&self, channel: ChannelId) -> Option<Arc<Entry>> {
        self.directory.by_channel(channel.get())
    }

    /// Where an agent is talked to; the server as far as it is known. `None` where that is not served any more.
    #[must_use]
    pub fn channel_of(&self, agent: Uuid) -> Option<(ChannelId, Option<GuildId>)> {
        let entry = self.directory.by_id(agent)?;
        let channel = ChannelId::new(entry.channel()?);
        // Another agent may name it, too: it is that one's.
        if self.directory.by_channel(channel.get())?.facts.id != agent {
            return None;
        }
        let noted = entry.guild_id.as_ref().and_then(|id| id.parse().ok()).filter(|id: &u64| *id != 0);
        let guild = noted.map(GuildId::new).or_else(|| self.guilds.of(channel));
        guild.is_none_or(|guild| self.serves(guild)).then_some((channel, guild))
    }

    /// Whether Chorus may read what was written in a channel, as far as that is known.
    #[must_use]
    pub fn may_read(&self, channel: ChannelId) -> bool {
        self.guilds.may(channel, Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY).unwrap_or(true)
    }

    /// Who owns a server, as far as that is known.
    #[must_use]
    pub fn owner_of(&self, guild: GuildId) -> Option<UserId> {
        self.guilds.owner_of(guild)
    }

    /// Whether a channel is one that a server was told to have. Threads are not among those.
    #[must_use]
    pub fn knows(&self, channel: ChannelId) -> bool {
        self.guilds.of(channel).is_some()
    }

    /// Chorus itself; nobody before the first connection.
    #[must_use]
    pub fn me(&self) -> Option<UserId> {
        self.guilds.me()
    }

    /// Whether everybody who sees a channel may change the conversation in it, as far as roles tell.
    #[must_use]
    pub fn all_change(&self, channel: ChannelId, approvers: &[String]) -> bool {
        self.guilds.all_may(channel, Permissions::MANAGE_MESSAGES, |role| {
            approvers.iter().any(|named| *named == role.name || *named == role.id.to_string())
        })
    }

    /// Whether a server is served.
    #[must_use]
    pub fn serves(&self, guild: GuildId) -> bool {
        self.served.has(guild)
    }

    /// Whether it is the only one that is.
    #[must_use]
    pub fn serves_only(&self, guild: GuildId) -> bool {
        self.served.all() == [guild]
    }
}

impl Channels for Rooms {
    fn name_of(&self, channel: u64) -> Option<String> {
        self.guilds.name_of(ChannelId::new(channel.max(1)))
    }
}

/// A connection is there. One that was taken up again tells of no servers.
pub fn connected(bridge: &Arc<Bridge>, resumed: bool) {
    if resumed && bridge.rooms.guilds.known().is_empty() {
        bridge.tasks.spawn(served::look_over(bridge.clone()));
        bridge.tasks.spawn(follow::all(bridge.clone()));
    }
}

/// Takes in what the gateway tells of servers and channels. Waits for nothing.
pub fn hear(bridge: &Arc<Bridge>, event: &Event) {
    let rooms = &bridge.rooms;
    rooms.served.hear(event);
    if let Some(guild) = rooms.guilds.hear(event, |guild| rooms.serves(guild)) {
        bridge.tasks.spawn(follow::guild(bridge.clone(), guild));
    }
    match event {
        Event::ChannelDelete(event) => {
            bridge.tasks.spawn(follow::gone(bridge.clone(), event.channel.id));
        }
        Event::GuildDelete(event) if !event.guild.unavailable && rooms.serves(event.guild.id) => {
            tracing::warn!(guild = %event.guild.id, "Chorus was removed from a server; its agents there hear nobody");
        }
        _ => {}
    }
}
