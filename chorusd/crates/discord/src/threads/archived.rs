//! Reads threads that were archived while nobody listened: somebody may have written in them before.

use std::sync::Arc;

use chorus_engine::agent::agent_index::AgentEntry;
use serenity::model::id::{ChannelId, GuildId, MessageId};

use super::events::insert_found;
use crate::app::DiscordApp;
use crate::inbound;
use crate::rest::Channel;

/// Backfills the threads below the channels of a guild's agents that are archived and have messages that were not read, of
/// each channel those that were archived last.
pub(super) async fn backfill(app: Arc<DiscordApp>, guild: GuildId) {
    app.channels.look_up_moved(&app).await;
    for agent in app.ops.agents.all().into_iter().chain(app.channels.others.all()) {
        let Some((channel, Some(of))) = app.channels.channel_of(agent.settings.id) else { continue };
        if of != guild {
            continue;
        }
        let rest = app.rest.background();
        let threads = tokio::select! {
            threads = rest.archived_threads(channel) => threads,
            () = app.stop.cancelled() => return,
        };
        match threads {
            Ok(threads) => backfill_unread(&app, &agent, channel, &threads).await,
            Err(error) => tracing::warn!(%channel, %error, "cannot list the archived threads of a channel"),
        }
    }
}

async fn backfill_unread(app: &Arc<DiscordApp>, agent: &AgentEntry, parent: ChannelId, threads: &[Channel]) {
    for thread in threads {
        match is_unread(app, agent, parent, thread).await {
            Ok(true) => {
                // It may have been opened since the list was made.
                if app.channels.threads.get(thread.id).is_none_or(|known| known.archived != Some(false)) {
                    insert_found(app, thread);
                }
                inbound::on_thread_available(app, thread.id);
            }
            Ok(false) => {}
            Err(failure) => tracing::warn!(thread = %thread.id, %failure, "cannot check an archived thread"),
        }
    }
}

/// Returns whether a thread has messages that were not read. Those of a thread that is older than the agent's connection to
/// the channel do not count, unless somebody wrote to the agent there.
async fn is_unread(
    app: &DiscordApp,
    agent: &AgentEntry,
    parent: ChannelId,
    thread: &Channel,
) -> chorus_base::error::Result<bool> {
    let Some(last) = thread.last_message_id.map(MessageId::get) else { return Ok(false) };
    let row = app.tables.channels.get(thread.id.get()).await?;
    if let Some(row) = row.filter(|row| row.agent == agent.settings.id && row.parent == Some(parent.get())) {
        return Ok(last > row.seen);
    }
    let after = app.tables.channels.threads_after(parent.get()).await?;
    Ok(after.is_some_and(|after| thread.id.get() > after))
}
