//! Prepares a conversation for a request that may begin a context in it: opens it if it is closed, and makes room for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_journal::ConversationRow;
use chorus_proto::{ErrorKind, EventType};
use chorus_session::conversation::ConversationKey;
use serde_json::json;

use super::new::{Opener, check_conversation_name, exists_error};
use super::target::ConversationTarget;
use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::ops::agent::AgentResolver;

/// Conversations in which a context is being started, with the number of requests that do: they count as live, so that not
/// more than allowed start at once.
#[derive(Debug, Clone, Default)]
pub struct StartingConversations(Arc<Mutex<HashMap<ConversationKey, usize>>>);

/// Counts a conversation as starting until it is dropped.
#[derive(Debug)]
pub(super) struct StartingGuard {
    all: StartingConversations,
    key: ConversationKey,
}

impl Drop for StartingGuard {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(requests) = all.get_mut(&self.key) {
            *requests -= 1;
            if *requests == 0 {
                all.remove(&self.key);
            }
        }
    }
}

impl AgentResolver {
    /// Like [`AgentResolver::conversation`], for a request that may begin a context: a closed conversation is opened, and
    /// if the agent has as many live ones as it may, the one that was quiet for longest is saved and cleared.
    ///
    /// # Errors
    /// As [`AgentResolver::conversation`]; `limit_reached` if all live conversations are at work.
    pub async fn conversation_to_write(
        &self,
        agent: Option<&str>,
        conversation: Option<&str>,
    ) -> Result<ConversationTarget> {
        let target = self.conversation(agent, conversation).await?;
        self.prepare_to_write(target).await
    }

    /// Opens the conversation if it is closed, and makes room for its context.
    pub async fn prepare_to_write(&self, target: ConversationTarget) -> Result<ConversationTarget> {
        let ConversationTarget { agent, key, .. } = target;
        if key.is_main() {
            return Ok(ConversationTarget::new(agent, key));
        }
        let is_closed = self.index.conversations.get(key).is_some_and(|row| row.closed_at.is_some());
        let was_reopened = is_closed && self.open_conversation(key).await?;
        let starting = match self.registry.context_info(key) {
            Some(_) => None,
            None => Some(self.make_room(&agent, key).await?),
        };
        Ok(ConversationTarget { agent, key, was_reopened, _starting: starting })
    }

    /// Says that a request opened the closed conversation `target`, and how to get what was said in it before; `None` if
    /// it was open.
    pub async fn reopened_note(&self, target: &ConversationTarget) -> Option<String> {
        let name = self.index.conversations.name(target.key).filter(|_| target.was_reopened)?;
        // Not essential: on an error the note does not name the command.
        let earlier = match self.registry.sessions().nth_newest(target.key, 0).await {
            Ok(Some(_)) => {
                let command = self.index.name_in_commands(target.key, "chorusctl restore latest");
                format!("; its earlier messages: {command}")
            }
            _ => String::new(),
        };
        Some(format!("reopened conversation {name}{earlier}"))
    }

    /// Checks that a context may be put into a new conversation called `new`, if one is asked for.
    ///
    /// # Errors
    /// `invalid_name`, `already_exists`.
    pub fn check_destination(&self, agent: &AgentEntry, new: Option<&str>) -> Result<()> {
        let Some(name) = new else { return Ok(()) };
        check_conversation_name(name)?;
        match self.index.conversations.by_name(agent.settings.id, name) {
            Some(row) if row.closed_at.is_none() || self.registry.context_info(row.key).is_some() => {
                Err(exists_error(&agent.settings.name, name))
            }
            _ => Ok(()),
        }
    }

    /// Returns the conversation into which a context is put: a new one called `new`, or `target` itself.
    ///
    /// # Errors
    /// As [`AgentResolver::check_destination`] and [`AgentResolver::conversation_to_write`].
    pub async fn destination(&self, target: ConversationTarget, new: Option<&str>) -> Result<ConversationTarget> {
        let target = match new {
            Some(name) => {
                let (key, _) = self.new_conversation(&target.agent, name, Opener::default()).await?;
                let target = ConversationTarget::new(target.agent, key);
                let prepared = self.prepare_to_write(target).await;
                if prepared.is_err() {
                    // Without a context it is not there for anybody, and the same request can be made again.
                    self.close_conversation(key).await?;
                }
                return prepared;
            }
            None => target,
        };
        self.prepare_to_write(target).await
    }

    /// Opens a conversation. Returns false if it was open.
    pub(super) async fn open_conversation(&self, key: ConversationKey) -> Result<bool> {
        let _one_at_a_time = self.conversation_locks.lock(key.agent).await;
        let Some(row) = self.index.conversations.get(key).filter(|row| row.closed_at.is_some()) else {
            return Ok(false);
        };
        self.store_conversation(ConversationRow { closed_at: None, ..(*row).clone() }).await?;
        Ok(true)
    }

    /// Stores a conversation in the journal and in the index. The caller holds the lock of conversations.
    pub(super) async fn store_conversation(&self, row: ConversationRow) -> Result<()> {
        self.registry.journal().store_conversation(row.clone()).await?;
        self.index.conversations.insert(row);
        Ok(())
    }

    /// Counts the conversation as live. If the agent has as many live ones as it may, saves and clears the one that was
    /// quiet for longest first, and says so. Contexts without messages, which no session can hold, stay and do not count.
    async fn make_room(&self, agent: &AgentEntry, key: ConversationKey) -> Result<StartingGuard> {
        let most = usize::try_from(agent.settings.max_conversations).unwrap_or(usize::MAX).max(1);
        let mut tried = HashSet::new();
        loop {
            let mut live = self.registry.live_conversations(Some(key.agent));
            live.retain(|other| *other != key && self.has_messages(*other));
            {
                let mut starting = self.starting_conversations.0.lock();
                let is_other =
                    |other: &&ConversationKey| other.agent == key.agent && **other != key && !live.contains(other);
                if live.len() + starting.keys().filter(is_other).count() < most {
                    *starting.entry(key).or_default() += 1;
                    return Ok(StartingGuard { all: self.starting_conversations.clone(), key });
                }
            }
            let now = self.registry.ticks();
            let mut quiet = live.iter().filter(|other| {
                !other.is_main() && !tried.contains(*other) && self.registry.running.status(**other, now).is_none()
            });
            let Some(quiet) = quiet.next().copied() else { return Err(too_many_error(&agent.settings.name, most)) };
            tried.insert(quiet);
            self.put_away(agent, quiet, most).await;
        }
    }

    /// Saves and clears a quiet conversation, unless a turn has begun in it or it cannot be saved.
    async fn put_away(&self, agent: &AgentEntry, quiet: ConversationKey, most: usize) {
        let cleared = match self.registry.ask(quiet, command::clear(true)).await {
            Ok(cleared) => cleared,
            Err(failure) => {
                tracing::info!(agent = %agent.settings.name, conversation = %quiet.id, %failure, "a conversation does not make room");
                return;
            }
        };
        let name = self.index.conversations.name(quiet);
        let shown = name.as_deref().unwrap_or_default();
        let saved = cleared.saved.map(|session| (session.short_id.clone(), session.header.id));
        let restore = saved.as_ref().map_or_else(String::new, |(short_id, _)| {
            let command = format!("chorusctl restore {short_id}");
            format!(" To continue: {}", self.index.name_in_commands(quiet, &command))
        });
        let text = format!(
            "The conversation {shown} was saved and cleared to make room: {} may have {most} at once \
             (max_conversations).{restore}",
            agent.settings.name
        );
        let data = json!({"text": text, "id": saved.map(|(_, id)| id)});
        self.registry.emit_event(EventType::Notice, Some(agent.settings.name.clone()), name, data);
    }
}

fn too_many_error(agent: &str, most: usize) -> Error {
    let hint = format!("raise the limit: chorusctl agent config {agent} max_conversations N");
    if most == 1 {
        let message = format!("agent {agent} may have 1 live conversation, and that is main");
        return Error::new(ErrorKind::LimitReached, message).hint(hint);
    }
    let message =
        format!("agent {agent} may have {most} live conversations, and none of them can be saved and cleared now");
    Error::new(ErrorKind::LimitReached, message).hint(format!("wait until one is done, or {hint}"))
}
