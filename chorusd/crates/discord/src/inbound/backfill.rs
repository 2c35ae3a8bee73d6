//! Backfill: reads what was written in a channel while the daemon was not connected.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chorus_engine::agent::agent_index::AgentEntry;
use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, MessageId};

use super::MAX_WAITING_CLAIMS;
use super::channel_worker::channel_guild;
use super::conversation_queue::PendingEdit;
use super::request::{Incoming, MessageRequest, classify};
use super::shared_claims;
use crate::app::DiscordApp;
use crate::rest::RestError;

/// Pages that are read at most: 2,000 messages.
const MAX_PAGES: usize = 20;

/// The messages and edits that were missed.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Messages of people that are not claimed yet, the oldest first.
    pub messages: Vec<Message>,
    /// There are older messages that were not read.
    pub has_more: bool,
    /// The newest message of the channel, by any author; 0 if none is new.
    pub newest: u64,
    /// Claimed messages in the queue that were edited or deleted.
    pub edits: Vec<(MessageId, PendingEdit)>,
}

/// Why a channel was not read.
#[derive(Debug)]
pub(super) enum BackfillError {
    /// Discord does not let Chorus read the channel. It stays so until somebody changes the permissions.
    Denied(String),
    /// The channel may be readable `after` that time.
    Transient { why: String, after: Option<Duration> },
}

impl From<RestError> for BackfillError {
    fn from(error: RestError) -> Self {
        match error {
            // A proxy in front of Discord refuses without a code, and not for ever.
            RestError::Refused { code: 0, .. } => Self::Transient { why: error.to_string(), after: None },
            RestError::Gone { .. } | RestError::Refused { .. } | RestError::Unauthorized => {
                Self::Denied(error.to_string())
            }
            RestError::RateLimited { after, .. } => Self::Transient { why: error.to_string(), after: Some(after) },
            error => Self::Transient { why: error.to_string(), after: None },
        }
    }
}

/// Reads back to the last message that was recorded as read, and to the oldest message that waits in the queue. If the
/// channel has no record yet, nothing is read: only messages from now on count.
pub(super) async fn read_channel(
    app: &DiscordApp,
    channel: ChannelId,
    agent: &AgentEntry,
) -> Result<Backlog, BackfillError> {
    let passing = |why: String| BackfillError::Transient { why, after: None };
    let noted = app.tables.channels.get(channel.get()).await.map_err(|failure| passing(failure.to_string()))?;
    let Some(noted) = noted else { return Ok(Backlog::default()) };
    let taken = app.tables.claims.claimed_after(channel.get(), noted.seen).await;
    let taken: HashSet<u64> = taken.map_err(|failure| passing(failure.to_string()))?.into_iter().collect();
    let slot = app.inbound.backfill_permits.acquire().await.map_err(|e| passing(e.to_string()))?;
    let waiting =
        shared_claims::waiting_requests(app, channel).await.map_err(|failure| passing(failure.to_string()))?;
    let waiting: HashMap<MessageId, MessageRequest> = waiting.into_iter().collect();
    let low = waiting.keys().map(|message| message.get() - 1).min().unwrap_or(u64::MAX).min(noted.seen);
    let (mut found, mut listed, mut more, mut newest, mut before) = (Vec::new(), HashSet::new(), true, 0, None);
    let is_new = |message: &Message| {
        let id = message.id.get();
        id > noted.seen && !taken.contains(&id) && is_for_agent(app, agent, message)
    };
    let mut reached = u64::MAX;
    for _ in 0..MAX_PAGES {
        let page = app.rest.message_page(channel, before).await?;
        newest = newest.max(page.newest.map_or(0, MessageId::get));
        reached = page.oldest.map_or(low, |oldest| oldest.get()).min(reached);
        listed.extend(page.listed);
        found.extend(page.messages.into_iter().filter(|message| message.id.get() > low));
        if !page.has_more || reached <= low {
            reached = low;
            more = false;
            break;
        }
        if found.iter().filter(|message| is_new(message)).count() > MAX_WAITING_CLAIMS as usize {
            break;
        }
        before = page.oldest;
    }
    drop(slot);
    // Discord shows an empty channel to an application that may not read its history.
    if listed.is_empty() && !app.channels.may_read_history(channel) {
        return Err(BackfillError::Denied("Chorus lacks the Read Message History permission".into()));
    }
    let seen_again: HashMap<MessageId, &Message> = found.iter().map(|message| (message.id, message)).collect();
    let changed = waiting.into_iter().filter(|(message, _)| message.get() > reached).filter_map(|(message, asked)| {
        match seen_again.get(&message) {
            // A message is deleted if it is missing from a non-empty list. An empty list proves nothing, and a message
            // that is listed but cannot be parsed still exists.
            None => (!listed.is_empty() && !listed.contains(&message)).then_some((message, PendingEdit::Deleted)),
            Some(now) => match classify(app, channel_guild(&app.channels, agent, now.guild_id), now) {
                // The REST API does not return what came with the event, for example the author's roles.
                Incoming::Request(now) if !now.is_same(&asked) => {
                    Some((message, PendingEdit::Changed(MessageRequest { by: asked.by, ..now })))
                }
                _ => None,
            },
        }
    });
    let changed = changed.collect();
    found.retain(|message| is_new(message));
    found.sort_by_key(|message| message.id);
    Ok(Backlog {
        messages: found,
        has_more: more,
        newest: if newest > noted.seen { newest } else { 0 },
        edits: changed,
    })
}

fn is_for_agent(app: &DiscordApp, agent: &AgentEntry, message: &Message) -> bool {
    classify(app, channel_guild(&app.channels, agent, message.guild_id), message) != Incoming::Ignored
}
