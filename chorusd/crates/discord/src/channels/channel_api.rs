//! The channel operations that `ops` calls.

use std::sync::{Arc, Weak};

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::discord::{ChannelApi, ChannelInfo, CreateOutcome, NewPost};
use chorus_proto::ErrorKind;
use chorus_runtime::SpawnTracked as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use serenity::model::channel::ChannelType;
use serenity::model::id::ChannelId;
use uuid::Uuid;

use super::super::app::DiscordApp;
use super::super::outbox::{LostChannelListener, MessageBody, Post};
use super::super::rest::RestError;
use super::guild_cache::ChannelFitness;
use super::{create, sync, welcome};

/// Implements [`ChannelApi`] for operations, as long as the Discord front end runs.
#[derive(Debug)]
pub(crate) struct DiscordChannels(Weak<DiscordApp>);

impl DiscordChannels {
    /// Registers it with `ops` and with the outbox.
    pub(crate) fn install(app: &Arc<DiscordApp>) {
        let door = Arc::new(Self(Arc::downgrade(app)));
        let _ = app.ops.discord.channel_api.set(door.clone());
        app.outbox.set_lost_channel_listener(door);
    }

    fn app(&self) -> Result<Arc<DiscordApp>> {
        self.0.upgrade().ok_or_else(Error::stopping)
    }
}

impl ChannelApi for DiscordChannels {
    fn create_channel(
        &self,
        name: String,
        prompt: Option<String>,
        guild: Option<u64>,
    ) -> BoxFuture<'_, Result<CreateOutcome>> {
        async move { create::create_for_agent(&*self.app()?, &name, prompt.as_deref(), guild).await }.boxed()
    }

    fn delete_channel(&self, channel: u64) -> BoxFuture<'_, Result<()>> {
        async move {
            match self.app()?.rest.background().delete_channel(ChannelId::new(channel.max(1))).await {
                Ok(()) | Err(RestError::Gone { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    fn find_channel(&self, channel: u64) -> BoxFuture<'_, Result<Option<ChannelInfo>>> {
        async move {
            let app = self.app()?;
            if !app.ops.discord.is_reachable() {
                return Ok(None);
            }
            app.channels.allowlist.load_if_empty().await?;
            let id = ChannelId::new(channel.max(1));
            let found = match app.rest.channel(id).await {
                Ok(found) => found,
                Err(RestError::Gone { .. }) => {
                    return Err(Error::new(ErrorKind::NotFound, format!("Discord has no channel {channel}")).hint(
                        "in Discord, enable Developer Mode, then right-click the channel and choose Copy Channel ID",
                    ));
                }
                Err(RestError::Refused { status: 403, .. }) => {
                    return Err(unfit_error("Chorus cannot see the channel"));
                }
                Err(error) => return Err(error.into()),
            };
            let guild = found.guild_id.filter(|guild| app.channels.serves(*guild));
            let guild = guild.ok_or_else(|| unfit_error("the channel is not in an allowed server"))?;
            if !matches!(found.kind, ChannelType::Text | ChannelType::News) {
                return Err(unfit_error("the channel is not a text channel"));
            }
            if let ChannelFitness::Unfit(why) = app.channels.guild_cache.check_channel(id) {
                return Err(unfit_error(why));
            }
            let newest = found.last_message_id.map_or(channel, |message| message.get());
            Ok(Some(ChannelInfo { guild: guild.get(), newest_message: newest }))
        }
        .boxed()
    }

    fn unusable_reason(&self, channel: u64) -> Option<String> {
        match self.app().ok()?.channels.guild_cache.check_channel(ChannelId::new(channel.max(1))) {
            ChannelFitness::Unfit(why) => Some(why),
            ChannelFitness::Unknown | ChannelFitness::Fit(_) => None,
        }
    }

    fn thread_problem(&self, channel: u64) -> Option<String> {
        self.app().ok()?.channels.thread_problem(ChannelId::new(channel.max(1)))
    }

    fn welcome_post(&self, agent: &AgentEntry, channel: u64) -> Result<NewPost> {
        let app = self.app()?;
        let prompt = agent.settings.system_prompt.as_deref().map(|prompt| app.redact(prompt));
        let mut content = welcome::welcome_text(&agent.settings.name, prompt.as_deref(), agent.permissions.as_str());
        let channel = ChannelId::new(channel.max(1));
        if let Some(problem) = app.channels.thread_problem(channel) {
            content.push_str(&format!("\n-# {problem}. Grant them if you want to use threads here."));
        }
        Post { channel, about: None, body: MessageBody::from_text(content), reply_to: None }.into_row()
    }

    fn line_post(&self, channel: u64, text: &str) -> Result<NewPost> {
        let (channel, body) = (ChannelId::new(channel.max(1)), MessageBody::from_text(self.app()?.redact(text)));
        Post { channel, about: None, body, reply_to: None }.into_row()
    }

    fn wake_outbox(&self, channel: u64) {
        if let Ok(app) = self.app() {
            app.outbox.wake_sender(ChannelId::new(channel.max(1)));
        }
    }

    fn sync_agent_channel(&self, agent: Uuid) {
        if let Ok(app) = self.app()
            && app.ops.discord.is_reachable()
        {
            app.tasks.spawn_tracked(sync::sync_agent(app.clone(), agent));
        }
    }

    fn rename_channel(&self, channel: u64, name: String) {
        let Ok(app) = self.app() else { return };
        let tasks = app.tasks.clone();
        tasks.spawn_tracked(async move {
            let rest = app.rest.background();
            let renamed = rest.rename_channel(ChannelId::new(channel.max(1)), &name);
            tokio::select! {
                () = app.stop.cancelled() => {}
                done = renamed => if let Err(error) = done {
                    tracing::warn!(agent = %name, channel, %error, "cannot rename the agent's channel");
                }
            }
        });
    }
}

impl LostChannelListener for DiscordChannels {
    fn channel_deleted(&self, channel: ChannelId) {
        if let Ok(app) = self.app() {
            app.tasks.spawn_tracked(sync::verify_deleted(app.ops.clone(), app.rest.clone(), channel));
        }
    }

    fn channel_forbidden(&self, channel: ChannelId) {
        let target = self.app().ok().and_then(|app| app.channels.target_of(channel));
        let agent = target.map(|target| target.agent.settings.name.clone()).unwrap_or_default();
        tracing::warn!(agent, %channel, "Chorus lacks permission to post in this channel: see docs/DISCORD.md");
    }
}

fn unfit_error(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Denied, why.into())
        .hint("use a text channel where Chorus can read and write messages; see docs/DISCORD.md for the permissions")
}
