//! The conversation of a thread: which one it is, and where its posts go.

use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use chorus_engine::ops::conversations::{ConversationKey, Opener};
use serenity::model::id::ChannelId;
use uuid::Uuid;

use super::cache::Thread;
use crate::app::DiscordApp;
use crate::channels::AgentChannels;

/// Prefix of the origins of conversations that threads created.
const ORIGIN_PREFIX: &str = "discord:";

/// Returns the origin of a thread's conversation.
#[must_use]
pub(crate) fn origin(thread: ChannelId) -> String {
    format!("{ORIGIN_PREFIX}{thread}")
}

/// Returns the thread of an origin; `None` if something else created the conversation.
#[must_use]
pub(crate) fn thread_of_origin(origin: &str) -> Option<ChannelId> {
    origin.strip_prefix(ORIGIN_PREFIX)?.parse().ok().filter(|id: &u64| *id != 0).map(ChannelId::new)
}

/// Returns the conversation that messages of a channel belong to: that of the thread if it is one with a conversation,
/// else `main`.
#[must_use]
pub(crate) fn find_conversation(ops: &Ops, agent: Uuid, channel: ChannelId) -> ConversationKey {
    let row = ops.agents.conversations.by_origin(agent, &origin(channel));
    row.map_or_else(|| ConversationKey::main(agent), |row| row.key)
}

/// Returns the conversation of a thread, which is created if there is none. A closed one stays closed.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`.
pub(crate) async fn ensure_conversation(
    app: &DiscordApp,
    agent: &AgentEntry,
    thread: &Thread,
) -> Result<ConversationKey> {
    let origin = origin(thread.id);
    if let Some(row) = app.ops.agents.conversations.by_origin(agent.settings.id, &origin) {
        return Ok(row.key);
    }
    let name = match &thread.name {
        Some(name) => Some(name.clone()),
        // Only a better name depends on it.
        None => app.rest.channel(thread.id).await.ok().and_then(|found| found.name),
    };
    let title = name.filter(|name| !name.trim().is_empty()).map(|name| app.redact(&name));
    let wanted = format!("discord-thread-{}", title.as_deref().unwrap_or_default());
    let opener = Opener { origin: Some(origin), title: title.map(|title| title.chars().take(200).collect()) };
    Ok(app.ops.agent_resolver.new_conversation(agent, &wanted, opener).await?.0)
}

/// Returns the conversation as a request names it; `None` for `main`.
#[must_use]
pub(crate) fn conversation_param(key: ConversationKey) -> Option<String> {
    (!key.is_main()).then(|| key.id.to_string())
}

/// Returns the channel for a notice about a conversation of an agent, named as in events. Returns `None` if the agent has
/// no channel, if the conversation belongs to no thread, or if the thread is archived, because a post would unarchive it.
#[must_use]
pub(crate) fn notice_channel(
    ops: &Ops,
    channels: &AgentChannels,
    agent: Uuid,
    conversation: Option<&str>,
) -> Option<ChannelId> {
    let (channel, _) = channels.channel_of(agent)?;
    let Some(name) = conversation else { return Some(channel) };
    let row = ops.agents.conversations.by_name(agent, name)?;
    let thread = thread_of_origin(row.origin.as_deref()?)?;
    let is_closed = row.closed_at.is_some() && ops.registry.context_info(row.key).is_none();
    (!is_closed && !channels.threads.is_archived(thread)).then_some(thread)
}

/// Returns the channel for an approval: the thread of the conversation, or the agent's channel if it belongs to none.
#[must_use]
pub(crate) fn approval_channel(
    ops: &Ops,
    channels: &AgentChannels,
    agent: Uuid,
    conversation: Option<&str>,
) -> Option<ChannelId> {
    let (channel, _) = channels.channel_of(agent)?;
    let row = conversation.and_then(|name| ops.agents.conversations.by_name(agent, name));
    Some(row.and_then(|row| thread_of_origin(row.origin.as_deref()?)).unwrap_or(channel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_conversation_names_its_thread() {
        assert_eq!(thread_of_origin(&origin(ChannelId::new(77))), Some(ChannelId::new(77)));
        for other in ["discord:", "discord:0", "discord:x", "discord-dm:7", "77", "send_to_agent:7"] {
            assert_eq!(thread_of_origin(other), None, "{other}");
        }
    }
}
