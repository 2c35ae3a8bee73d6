//! Synchronizes the table of channels with Discord.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use chorus_engine::ops::agent::discord_channel;
use chorus_engine::ops::discord::ChannelRow;
use serenity::model::id::{ChannelId, GuildId};

use super::super::app::DiscordApp;
use super::super::rest::{RestClient, RestError};

/// Synchronizes the agents whose channels are in a guild that was received, and those whose channels are in no guild.
pub(super) async fn sync_guild(app: Arc<DiscordApp>, guild: GuildId) {
    let rooms = &app.channels;
    let whole = rooms.guild_cache.is_complete();
    let concerns = |entry: &Arc<AgentEntry>| {
        let Some(channel) = entry.channel() else { return false };
        let noted = entry.guild_id.as_deref() == Some(&guild.to_string());
        noted || rooms.guild_cache.guild_of(ChannelId::new(channel)).map_or(whole, |of| of == guild)
    };
    let agents: Vec<Arc<AgentEntry>> = app.ops.agents.all().into_iter().filter(concerns).collect();
    sync_agents(&app, agents, true).await;
}

/// Synchronizes all agents after the session of the previous daemon was resumed. Changes since are replayed, so only
/// channels without a record are requested.
pub(super) async fn sync_all(app: Arc<DiscordApp>) {
    let agents = app.ops.agents.all();
    sync_agents(&app, agents, false).await;
}

/// Synchronizes one agent.
pub(super) async fn sync_agent(app: Arc<DiscordApp>, agent: uuid::Uuid) {
    let agents = app.ops.agents.by_id(agent).into_iter().collect();
    sync_agents(&app, agents, true).await;
}

/// Detaches the agent of a channel that was deleted.
pub(super) async fn on_channel_deleted(ops: Arc<Ops>, channel: ChannelId) {
    if let Err(failure) = discord_channel::detach_channel(&ops.agent_editor, channel.get()).await {
        tracing::error!(%channel, %failure, "cannot remove a deleted channel from its agent");
    }
}

/// Checks a channel that a post did not find. If it was deleted, its agent goes on without a channel.
pub(super) async fn verify_deleted(ops: Arc<Ops>, rest: Arc<RestClient>, channel: ChannelId) {
    if matches!(rest.background().channel(channel).await, Err(RestError::Gone { .. })) {
        on_channel_deleted(ops, channel).await;
    }
}

async fn sync_agents(app: &Arc<DiscordApp>, agents: Vec<Arc<AgentEntry>>, doubt: bool) {
    let rows = match app.tables.channels.list(None).await {
        Ok(rows) => rows,
        Err(failure) => return tracing::error!(%failure, "cannot update the agents' channels"),
    };
    for agent in agents {
        if app.stop.is_cancelled() {
            return;
        }
        if let Err(failure) = sync_channel(app, &agent, &rows, doubt).await {
            tracing::error!(agent = %agent.settings.name, %failure, "cannot update the agent's channel");
        }
    }
}

/// Updates the record of an agent's channel. `doubt`: a channel in no cached guild may have been deleted, so request
/// it.
async fn sync_channel(app: &Arc<DiscordApp>, agent: &Arc<AgentEntry>, rows: &[ChannelRow], doubt: bool) -> Result<()> {
    let (ops, id) = (&app.ops, agent.settings.id);
    // The rows may be outdated: keep a row whose channel belongs to another agent by now.
    let left = |channel| ops.agents.by_channel(channel).is_none_or(|owner| owner.settings.id == id);
    for row in rows.iter().filter(|row| row.agent == id && Some(row.channel) != agent.channel() && left(row.channel)) {
        app.tables.channels.delete(row.channel).await?;
    }
    let Some(channel) = agent.channel().filter(|channel| {
        // The channel belongs to another agent that names it, too.
        ops.agents.by_channel(*channel).is_some_and(|owner| owner.settings.id == id)
    }) else {
        return Ok(());
    };
    let row = rows.iter().find(|row| row.channel == channel && row.agent == id);
    let known = app.channels.guild_cache.guild_of(ChannelId::new(channel));
    let noted = row.filter(|row| agent.guild_id.as_deref() == Some(&row.guild.to_string()));
    if noted.is_some_and(|row| known.map_or(!doubt, |known| known.get() == row.guild)) {
        return Ok(());
    }
    let found = match app.rest.background().channel(ChannelId::new(channel)).await {
        Ok(found) => found,
        Err(RestError::Gone { .. }) => {
            on_channel_deleted(ops.clone(), ChannelId::new(channel)).await;
            return Ok(());
        }
        Err(error) => {
            tracing::warn!(agent = %agent.settings.name, channel, %error, "cannot check the agent's channel");
            return Ok(());
        }
    };
    let Some(guild) = found.guild_id.filter(|guild| app.channels.serves(*guild)) else {
        tracing::warn!(agent = %agent.settings.name, channel, "the agent's channel is not in an allowed server");
        return Ok(());
    };
    if ops.agents.by_channel(channel).is_none_or(|owner| owner.settings.id != id) {
        return Ok(());
    }
    let newest = found.last_message_id.map_or(channel, |message| message.get());
    let (seen, skipped) = row.map_or((newest, newest), |row| (row.seen, row.skipped));
    let made = row.is_some_and(|row| row.created_by_us);
    app.tables
        .channels
        .upsert(ChannelRow {
            channel,
            guild: guild.get(),
            agent: id,
            created_by_us: made,
            seen,
            skipped,
            parent: None,
            user: None,
        })
        .await?;
    if row.is_none() {
        discord_channel::post_welcome(&ops.agent_editor, agent, channel).await;
    }
    discord_channel::record_guild(&ops.agent_editor, channel, guild.get()).await
}
