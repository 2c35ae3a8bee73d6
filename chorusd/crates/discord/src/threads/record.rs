//! Records on disk how far a thread was read, as for channels.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::discord::ChannelRow;
use serenity::model::id::MessageId;

use super::cache::Thread;
use crate::app::DiscordApp;

/// Makes sure that a thread has a row. In a public thread that is newer than the agent's connection to the channel, all
/// messages count, and in an older one those since. In a private thread, and if the time of the connection is not known, those
/// after the last count, or from `message` on, which was just received.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`.
pub(crate) async fn record(
    app: &DiscordApp,
    agent: &AgentEntry,
    thread: &Arc<Thread>,
    message: Option<MessageId>,
) -> Result<()> {
    let (id, parent, agent) = (thread.id.get(), thread.parent.get(), agent.settings.id);
    let known = app.tables.channels.get(id).await?;
    if known.is_none_or(|row| row.agent != agent || row.parent != Some(parent)) {
        let seen = match app.tables.channels.threads_after(parent).await? {
            // What was written in a private thread before Chorus was added is not for it.
            Some(after) if !(thread.is_private && message.is_some()) => id.max(after),
            _ => message.map(|message| message.get() - 1).or(thread.last_message.map(MessageId::get)).unwrap_or(id),
        };
        let row = ChannelRow {
            channel: id,
            guild: thread.guild.get(),
            agent,
            created_by_us: false,
            seen,
            skipped: seen,
            parent: Some(parent),
            user: None,
        };
        app.tables.channels.upsert(row).await?;
    }
    app.channels.threads.update(thread.id, |thread| thread.is_recorded = true);
    Ok(())
}
