//! The conversations of channels, threads and direct messages: which one a message belongs to, and where its posts go.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use chorus_engine::ops::conversations::session_scope::{DIRECT_ORIGIN, PRIVATE_THREAD_ORIGIN, is_private};
use chorus_engine::ops::conversations::{ConversationKey, ConversationRow, Opener};
use chorus_proto::ErrorKind;
use serenity::model::channel::ChannelType;
use serenity::model::id::{ChannelId, UserId};
use uuid::Uuid;

use crate::app::DiscordApp;
use crate::channels::{AgentChannels, ChannelTarget};
use crate::direct::DirectChannel;
use crate::threads::Thread;

/// Prefix of the origins of conversations that public threads created; the id of the thread follows. Conversations from
/// before private threads had their own have it, too.
const THREAD_ORIGIN: &str = "discord:";

/// The limit on a title in characters.
const MAX_TITLE_CHARS: usize = 200;

/// The place in Discord that created a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConversationPlace {
    Thread(ChannelId),
    /// Direct messages with this person.
    Direct(UserId),
}

impl ConversationPlace {
    /// Parses an origin; `None` if something else created the conversation.
    #[must_use]
    pub(crate) fn of_origin(origin: &str) -> Option<Self> {
        let id = |text: &str| text.parse().ok().filter(|id: &u64| *id != 0);
        if let Some(user) = origin.strip_prefix(DIRECT_ORIGIN) {
            return id(user).map(|id| Self::Direct(UserId::new(id)));
        }
        let thread = origin.strip_prefix(THREAD_ORIGIN).or_else(|| origin.strip_prefix(PRIVATE_THREAD_ORIGIN))?;
        id(thread).map(|id| Self::Thread(ChannelId::new(id)))
    }
}

/// Returns the conversation of a thread with an agent, if it has one.
#[must_use]
pub(crate) fn of_thread(ops: &Ops, agent: Uuid, thread: ChannelId) -> Option<Arc<ConversationRow>> {
    let find = |prefix| ops.agents.conversations.by_origin(agent, &format!("{prefix}{thread}"));
    [THREAD_ORIGIN, PRIVATE_THREAD_ORIGIN].into_iter().find_map(find)
}

/// Returns the conversation of an agent that a channel stands for: `main` of the channel's own agent and of any other one, or
/// that of a thread or of direct messages. Returns `None` if these have none yet.
#[must_use]
pub(crate) fn find_conversation(
    ops: &Ops,
    channels: &AgentChannels,
    agent: Uuid,
    channel: ChannelId,
) -> Option<ConversationKey> {
    if let Some(direct) = channels.direct.get(channel) {
        let row = ops.agents.conversations.by_origin(agent, &direct_origin(direct.user));
        return row.map(|row| row.key);
    }
    if let Some(row) = of_thread(ops, agent, channel) {
        return Some(row.key);
    }
    let is_own = |target: ChannelTarget| target.thread.is_some() && target.agent.settings.id == agent;
    (!channels.target_of(channel).is_some_and(is_own)).then(|| ConversationKey::main(agent))
}

/// The error about a thread or direct messages without a conversation.
#[must_use]
pub(crate) fn no_conversation_error() -> Error {
    Error::new(ErrorKind::NothingToSave, "This place has no conversation yet").hint("write a message to start it")
}

/// Returns the conversation of a target, which is created if there is none. A closed one stays closed.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`.
pub(crate) async fn ensure_conversation(app: &DiscordApp, target: &ChannelTarget) -> Result<ConversationKey> {
    let agent = &target.agent;
    match (&target.thread, &target.direct) {
        (Some(thread), _) => ensure_thread(app, agent, thread).await,
        (None, Some(direct)) => ensure_direct(app, agent, direct).await,
        (None, None) => Ok(ConversationKey::main(agent.settings.id)),
    }
}

async fn ensure_thread(app: &DiscordApp, agent: &AgentEntry, thread: &Thread) -> Result<ConversationKey> {
    if let Some(row) = of_thread(&app.ops, agent.settings.id, thread.id) {
        return Ok(row.key);
    }
    let (name, is_private) = match &thread.name {
        Some(name) => (Some(name.clone()), thread.is_private),
        // Only the record on disk is known, which has neither.
        None => match app.rest.channel(thread.id).await {
            Ok(found) => (found.name, found.kind == ChannelType::PrivateThread),
            Err(_) => (None, thread.is_private),
        },
    };
    let (prefix, named) = match is_private {
        true => (PRIVATE_THREAD_ORIGIN, "discord-private"),
        false => (THREAD_ORIGIN, "discord-thread"),
    };
    create(app, agent, format!("{prefix}{}", thread.id), named, name).await
}

async fn ensure_direct(app: &DiscordApp, agent: &AgentEntry, direct: &DirectChannel) -> Result<ConversationKey> {
    create(app, agent, direct_origin(direct.user), "discord-dm", direct.name.clone()).await
}

/// Creates the conversation with this origin, unless there is one.
async fn create(
    app: &DiscordApp,
    agent: &AgentEntry,
    origin: String,
    prefix: &str,
    name: Option<String>,
) -> Result<ConversationKey> {
    if let Some(row) = app.ops.agents.conversations.by_origin(agent.settings.id, &origin) {
        return Ok(row.key);
    }
    let title = name.and_then(|name| conversation_title(app, &name));
    let wanted = format!("{prefix}-{}", title.as_deref().unwrap_or_default());
    let opener = Opener { origin: Some(origin), title };
    Ok(app.ops.agent_resolver.new_conversation(agent, &wanted, opener).await?.0)
}

/// Returns the title of a conversation for a name in Discord; `None` if the name is empty.
#[must_use]
pub(crate) fn conversation_title(app: &DiscordApp, name: &str) -> Option<String> {
    let title: String = app.redact(name.trim()).chars().take(MAX_TITLE_CHARS).collect();
    Some(title).filter(|title| !title.trim().is_empty())
}

fn direct_origin(user: UserId) -> String {
    format!("{DIRECT_ORIGIN}{user}")
}

/// Returns the conversation as a request names it; `None` for `main`.
#[must_use]
pub(crate) fn conversation_param(key: ConversationKey) -> Option<String> {
    (!key.is_main()).then(|| key.id.to_string())
}

/// Returns the channel for a notice about a conversation of an agent, named as in events. Returns `None` if the agent has
/// no channel, if the conversation belongs to no place in Discord, or if its thread is archived, because a post would
/// unarchive it.
#[must_use]
pub(crate) fn notice_channel(
    ops: &Ops,
    channels: &AgentChannels,
    agent: Uuid,
    conversation: Option<&str>,
) -> Option<ChannelId> {
    let own = channels.channel_of(agent).map(|(channel, _)| channel);
    let Some(name) = conversation else { return own };
    let row = ops.agents.conversations.by_name(agent, name)?;
    match ConversationPlace::of_origin(row.origin.as_deref()?)? {
        ConversationPlace::Direct(user) => channels.direct.channel_with(user),
        ConversationPlace::Thread(thread) => {
            let is_closed = row.closed_at.is_some() && ops.registry.context_info(row.key).is_none();
            (own.is_some() && !is_closed && !channels.threads.is_archived(thread)).then_some(thread)
        }
    }
}

/// Returns the channel for an approval: the thread or the direct messages of the conversation, or the agent's channel if it
/// belongs to neither and is not private.
#[must_use]
pub(crate) fn approval_channel(
    ops: &Ops,
    channels: &AgentChannels,
    agent: Uuid,
    conversation: Option<&str>,
) -> Option<ChannelId> {
    let own = channels.channel_of(agent).map(|(channel, _)| channel);
    let row = conversation.and_then(|name| ops.agents.conversations.by_name(agent, name));
    match row.as_ref().and_then(|row| ConversationPlace::of_origin(row.origin.as_deref()?)) {
        Some(ConversationPlace::Direct(user)) => channels.direct.channel_with(user),
        Some(ConversationPlace::Thread(thread)) => own.map(|_| thread),
        None if row.as_ref().is_some_and(|row| is_private(row)) => None,
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_conversation_names_its_place() {
        let thread = Some(ConversationPlace::Thread(ChannelId::new(77)));
        for (origin, place) in [
            ("discord:77", thread),
            ("discord-private:77", thread),
            ("discord-dm:7", Some(ConversationPlace::Direct(UserId::new(7)))),
            ("discord:", None),
            ("discord:0", None),
            ("discord:x", None),
            ("discord-dm:", None),
            ("77", None),
            ("send_to_agent:7", None),
        ] {
            assert_eq!(ConversationPlace::of_origin(origin), place, "{origin}");
        }
    }
}
