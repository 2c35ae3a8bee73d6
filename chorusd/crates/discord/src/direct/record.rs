//! Records on disk how far direct messages were read, as for channels.

use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::discord::ChannelRow;
use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, MessageId, UserId};
use serenity::model::user::User;

use super::channels::DirectChannel;
use crate::app::DiscordApp;

/// Milliseconds from 1970 to the first id of Discord.
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;

/// Loads the channels that are recorded on disk, so that their messages find their way after a restart.
pub(crate) async fn load(app: &DiscordApp) {
    match app.tables.channels.list_direct().await {
        Ok(rows) => rows.iter().for_each(|row| learn(app, row)),
        Err(failure) => tracing::error!(%failure, "cannot load the channels of direct messages"),
    }
}

/// Learns a channel of direct messages from its row, which another node may have inserted, unless more is known of it.
pub(crate) fn learn(app: &DiscordApp, row: &ChannelRow) {
    let (Some(user), false) = (row.user.filter(|user| *user != 0), row.channel == 0) else { return };
    let (id, user) = (ChannelId::new(row.channel), UserId::new(user));
    match app.channels.direct.get(id) {
        Some(_) => app.channels.direct.mark_recorded(id),
        None => app.channels.direct.insert(DirectChannel { id, user, name: None, is_recorded: true }),
    }
}

/// Leaves unanswered what was written while nobody answered direct messages.
pub(crate) async fn skip_unserved(app: &DiscordApp) {
    let rows = match app.tables.channels.list_direct().await {
        Ok(rows) => rows,
        Err(failure) => return tracing::error!(%failure, "cannot load the channels of direct messages"),
    };
    let now = app.ops.clock.now().as_millisecond().saturating_sub(DISCORD_EPOCH_MS);
    let newest = u64::try_from(now).unwrap_or_default() << 22;
    let served = app.channels.direct_agent().map(|agent| agent.settings.id);
    for row in rows {
        if served != Some(row.agent)
            && let Err(failure) = app.tables.channels.mark_seen(row.channel, newest).await
        {
            tracing::warn!(channel = row.channel, %failure, "cannot record that direct messages are not answered");
        }
    }
}

/// Registers the channel of a message, if it is a direct message of a person.
pub(crate) fn observe(app: &DiscordApp, message: &Message) {
    if message.guild_id.is_none() && !message.author.bot && !message.author.system && message.webhook_id.is_none() {
        register(app, message.channel_id, &message.author);
    }
}

/// Registers the channel of the direct messages with a person.
pub(crate) fn register(app: &DiscordApp, id: ChannelId, user: &User) {
    let name = user.global_name.as_ref().unwrap_or(&user.name).clone();
    app.channels.direct.insert(DirectChannel { id, user: user.id, name: Some(name), is_recorded: false });
}

/// Returns whether it is recorded on disk how far the direct messages of a channel were read.
pub(crate) fn is_recorded(app: &DiscordApp, channel: ChannelId) -> bool {
    app.channels.direct.get(channel).is_some_and(|direct| direct.is_recorded)
}

/// Records that a direct message is not answered because no agent does, so that none answers it later.
pub(crate) async fn mark_unserved(app: &DiscordApp, channel: ChannelId, message: MessageId) {
    if let Err(failure) = app.tables.channels.mark_seen(channel.get(), message.get()).await {
        tracing::warn!(%channel, %failure, "cannot record that a direct message is not answered");
    }
}

/// Makes sure that direct messages have a row for this agent, from `message` on, which was just received. Without a message,
/// returns false if there is no such row.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`.
pub(crate) async fn ensure_recorded(
    app: &DiscordApp,
    agent: &AgentEntry,
    direct: &DirectChannel,
    message: Option<MessageId>,
) -> Result<bool> {
    let (channel, agent) = (direct.id.get(), agent.settings.id);
    if app.tables.channels.get(channel).await?.is_none_or(|row| row.agent != agent) {
        let Some(message) = message else { return Ok(false) };
        let seen = message.get() - 1;
        let user = Some(direct.user.get());
        let row =
            ChannelRow { channel, guild: 0, agent, created_by_us: false, seen, skipped: seen, parent: None, user };
        app.tables.channels.upsert(row).await?;
    }
    app.channels.direct.mark_recorded(direct.id);
    Ok(true)
}
