//! What is noted of channels follows what Discord says of them.

use std::sync::Arc;

use serenity::model::id::{ChannelId, GuildId};

use super::super::bridge::Bridge;
use super::super::rest::RestError;
use crate::agent::directory::Entry;
use crate::failure::Result;
use crate::ops::agent::room;
use crate::ops::discord::channels::{self, ChannelRow};

/// A server was told of: looks after the agents that have channels in it, or whose channels are in none.
pub async fn guild(bridge: Arc<Bridge>, guild: GuildId) {
    let rooms = &bridge.rooms;
    let whole = rooms.guilds.are_whole();
    let concerns = |entry: &Arc<Entry>| {
        let Some(channel) = entry.channel() else { return false };
        let noted = entry.guild_id.as_deref() == Some(&guild.to_string());
        noted || rooms.guilds.of(ChannelId::new(channel)).map_or(whole, |of| of == guild)
    };
    let agents: Vec<Arc<Entry>> = bridge.ops.directory.all().into_iter().filter(concerns).collect();
    look_after(&bridge, agents, true).await;
}

/// A connection of the daemon before was taken up again: what changed since is told, so that only what was not noted is looked at.
pub async fn all(bridge: Arc<Bridge>) {
    let agents = bridge.ops.directory.all();
    look_after(&bridge, agents, false).await;
}

/// Looks after one agent.
pub async fn agent(bridge: Arc<Bridge>, agent: uuid::Uuid) {
    let agents = bridge.ops.directory.by_id(agent).into_iter().collect();
    look_after(&bridge, agents, true).await;
}

/// A channel is said to be gone.
pub async fn gone(bridge: Arc<Bridge>, channel: ChannelId) {
    if let Err(failure) = room::detach(&bridge.ops, channel.get()).await {
        tracing::error!(%channel, %failure, "an agent keeps a channel that is gone");
    }
}

/// A post found no channel: unless it is there all the same, its agent goes on without one.
pub async fn missed(bridge: Arc<Bridge>, channel: ChannelId) {
    if matches!(bridge.rest.waiting().channel(channel).await, Err(RestError::Gone { .. })) {
        gone(bridge, channel).await;
    }
}

async fn look_after(bridge: &Arc<Bridge>, agents: Vec<Arc<Entry>>, doubt: bool) {
    let rows = match channels::all(&bridge.ops).await {
        Ok(rows) => rows,
        Err(failure) => return tracing::error!(%failure, "the channels of agents cannot be looked after"),
    };
    for agent in agents {
        if bridge.stop.is_cancelled() {
            return;
        }
        if let Err(failure) = note(bridge, &agent, &rows, doubt).await {
            tracing::error!(agent = %agent.facts.name, %failure, "its channel cannot be looked after");
        }
    }
}

/// Has the table say of an agent's channel what is so. `doubt`: one that no server is known to have may be gone.
async fn note(bridge: &Arc<Bridge>, agent: &Arc<Entry>, rows: &[ChannelRow], doubt: bool) -> Result<()> {
    let (ops, id) = (&bridge.ops, agent.facts.id);
    // What was noted may be old by now: a channel that is another agent's stays its.
    let left = |channel| ops.directory.by_channel(channel).is_none_or(|owner| owner.facts.id == id);
    for row in rows.iter().filter(|row| row.agent == id && Some(row.channel) != agent.channel() && left(row.channel)) {
        channels::remove(ops, row.channel).await?;
    }
    let Some(channel) = agent.channel().filter(|channel| {
        // Another agent may name it, too: it is that one's.
        ops.directory.by_channel(*channel).is_some_and(|owner| owner.facts.id == id)
    }) else {
        return Ok(());
    };
    let row = rows.iter().find(|row| row.channel == channel && row.agent == id);
    let known = bridge.rooms.guilds.of(ChannelId::new(channel));
    let noted = row.filter(|row| agent.guild_id.as_deref() == Some(&row.guild.to_string()));
    if noted.is_some_and(|row| known.map_or(!doubt, |known| known.get() == row.guild)) {
        return Ok(());
    }
    let found = match bridge.rest.waiting().channel(ChannelId::new(channel)).await {
        Ok(found) => found,
        Err(RestError::Gone { .. }) => {
            gone(bridge.clone(), ChannelId::new(channel)).await;
            return Ok(());
        }
        Err(error) => {
            tracing::warn!(agent = %agent.facts.name, channel, %error, "its channel cannot be looked at");
            return Ok(());
        }
    };
    let Some(guild) = found.guild_id.filter(|guild| bridge.rooms.serves(*guild)) else {
        tracing::warn!(agent = %agent.facts.name, channel, "its channel is in no server that Chorus serves");
        return Ok(());
    };
    if ops.directory.by_channel(channel).is_none_or(|owner| owner.facts.id != id) {
        return Ok(());
    }
    let newest = found.last_message_id.map_or(channel, |message| message.get());
    let (seen, skipped) = row.map_or((newest, newest), |row| (row.seen, row.skipped));
    let made = row.is_some_and(|row| row.made);
    channels::put(ops, ChannelRow { channel, guild: guild.get(), agent: id, made, seen, skipped }).await?;
    if row.is_none() {
        room::welcome(ops, agent, channel).await;
    }
    room::settle_in(ops, channel, guild.get()).await
}
