//! What verbs ask of Discord.

use std::sync::{Arc, Weak};

use chorus_proto::ErrorKind;
use futures_util::future::{BoxFuture, FutureExt as _};
use serenity::model::channel::ChannelType;
use serenity::model::id::ChannelId;
use uuid::Uuid;

use super::super::bridge::Bridge;
use super::super::posts::{Body, Lost, Post};
use super::super::rest::RestError;
use super::guilds::Place;
use super::{follow, make, welcome};
use crate::agent::directory::Entry;
use crate::failure::{Failure, Result};
use crate::ops::discord::{Face, Found, Making, NewPost, State};

/// The way from verbs to Discord, as long as that is there.
#[derive(Debug)]
pub struct Door(Weak<Bridge>);

impl Door {
    /// Lets verbs, and the outbox, find the bridge.
    pub fn open(bridge: &Arc<Bridge>) {
        let door = Arc::new(Self(Arc::downgrade(bridge)));
        let _ = bridge.ops.discord.face.set(door.clone());
        bridge.posts.tell_lost(door);
    }

    fn bridge(&self) -> Result<Arc<Bridge>> {
        self.0.upgrade().ok_or_else(Failure::stopping)
    }
}

impl Face for Door {
    fn make_channel(&self, name: String, prompt: Option<String>, guild: Option<u64>) -> BoxFuture<'_, Result<Making>> {
        async move { make::make(&*self.bridge()?, &name, prompt.as_deref(), guild).await }.boxed()
    }

    fn delete_channel(&self, channel: u64) -> BoxFuture<'_, Result<()>> {
        async move {
            match self.bridge()?.rest.waiting().delete_channel(ChannelId::new(channel.max(1))).await {
                Ok(()) | Err(RestError::Gone { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    fn find_channel(&self, channel: u64) -> BoxFuture<'_, Result<Option<Found>>> {
        async move {
            let bridge = self.bridge()?;
            if bridge.ops.discord.state() != State::Connected {
                return Ok(None);
            }
            let id = ChannelId::new(channel.max(1));
            let found = match bridge.rest.channel(id).await {
                Ok(found) => found,
                Err(RestError::Gone { .. }) => {
                    return Err(Failure::new(ErrorKind::NotFound, format!("Discord knows no channel {channel}"))
                        .hint("in Discord: Developer Mode on, then right-click the channel, Copy Channel ID"));
                }
                Err(RestError::Refused { status: 403, .. }) => return Err(unfit("Chorus may not see that channel")),
                Err(error) => return Err(error.into()),
            };
            let guild = found.guild_id.filter(|guild| bridge.rooms.serves(*guild));
            let guild = guild.ok_or_else(|| unfit("that channel is in no server that Chorus serves"))?;
            if !matches!(found.kind, ChannelType::Text | ChannelType::News) {
                return Err(unfit("that is no text channel"));
            }
            if let Place::Unfit(why) = bridge.rooms.guilds.place(id) {
                return Err(unfit(why));
            }
            let newest = found.last_message_id.map_or(channel, |message| message.get());
            Ok(Some(Found { guild: guild.get(), newest }))
        }
        .boxed()
    }

    fn unfit(&self, channel: u64) -> Option<String> {
        match self.bridge().ok()?.rooms.guilds.place(ChannelId::new(channel.max(1))) {
            Place::Unfit(why) => Some(why),
            Place::Unknown | Place::Fit(_) => None,
        }
    }

    fn welcome(&self, agent: &Entry, channel: u64) -> Result<NewPost> {
        let bridge = self.bridge()?;
        let prompt = agent.facts.system_prompt.as_deref().map(|prompt| bridge.clean(prompt));
        let content = welcome::welcome(&agent.facts.name, prompt.as_deref(), agent.permissions.as_str());
        let channel = ChannelId::new(channel.max(1));
        Post { channel, about: None, body: Body::text(content), reply_to: None }.row()
    }

    fn line(&self, channel: u64, text: &str) -> Result<NewPost> {
        let (channel, body) = (ChannelId::new(channel.max(1)), Body::text(self.bridge()?.clean(text)));
        Post { channel, about: None, body, reply_to: None }.row()
    }

    fn posted(&self, channel: u64) {
        if let Ok(bridge) = self.bridge() {
            bridge.posts.wake(ChannelId::new(channel.max(1)));
        }
    }

    fn follow(&self, agent: Uuid) {
        if let Ok(bridge) = self.bridge()
            && bridge.ops.discord.state() == State::Connected
        {
            bridge.tasks.spawn(follow::agent(bridge.clone(), agent));
        }
    }

    fn rename_channel(&self, channel: u64, name: String) {
        let Ok(bridge) = self.bridge() else { return };
        let tasks = bridge.tasks.clone();
        tasks.spawn(async move {
            let rest = bridge.rest.waiting();
            let renamed = rest.rename_channel(ChannelId::new(channel.max(1)), &name);
            tokio::select! {
                () = bridge.stop.cancelled() => {}
                done = renamed => if let Err(error) = done {
                    tracing::warn!(agent = %name, channel, %error, "its channel keeps its name");
                }
            }
        });
    }
}

impl Lost for Door {
    fn gone(&self, channel: ChannelId) {
        if let Ok(bridge) = self.bridge() {
            bridge.tasks.spawn(follow::missed(bridge.clone(), channel));
        }
    }

    fn forbidden(&self, channel: ChannelId) {
        let agent = self.bridge().ok().and_then(|bridge| bridge.rooms.agent_of(channel));
        let agent = agent.map(|agent| agent.facts.name.clone()).unwrap_or_default();
        tracing::warn!(agent, %channel, "Chorus may not write in this channel: give it the permissions that docs/DISCORD.md lists");
    }
}

fn unfit(why: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::Denied, why.into())
        .hint("name a text channel that Chorus may see and write in; docs/DISCORD.md lists the permissions")
}
