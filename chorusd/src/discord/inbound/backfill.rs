//! What was written in a channel while nobody listened.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, MessageId};

use super::channel::guild;
use super::desk::Wish;
use super::heard::{Asked, Heard, heard};
use crate::agent::directory::Entry;
use crate::discord::bridge::Bridge;
use crate::discord::rest::RestError;
use crate::ops::discord::{channels, claims};

/// Answers of Discord that are read at most: 2,000 messages.
const PAGES: usize = 20;

/// What there is to make up for.
#[derive(Debug, Default)]
pub struct Missing {
    /// What people wrote since, the oldest first.
    pub messages: Vec<Message>,
    /// There are older ones that were not read.
    pub more: bool,
    /// The newest message of the channel, whoever wrote it; 0: there is none that is new.
    pub newest: u64,
    /// Messages that wait and were changed or deleted.
    pub changed: Vec<(MessageId, Wish)>,
}

/// Why a channel was not read.
#[derive(Debug)]
pub enum Failed {
    /// Discord does not let Chorus read it, as long as nobody changes that.
    Closed(String),
    /// It may be read `after` that time.
    Passing { why: String, after: Option<Duration> },
}

impl From<RestError> for Failed {
    fn from(error: RestError) -> Self {
        match error {
            // What stands before Discord refuses without a code, and not for ever.
            RestError::Refused { code: 0, .. } => Self::Passing { why: error.to_string(), after: None },
            RestError::Gone { .. } | RestError::Refused { .. } | RestError::Unauthorized => {
                Self::Closed(error.to_string())
            }
            RestError::Limited { after, .. } => Self::Passing { why: error.to_string(), after: Some(after) },
            error => Self::Passing { why: error.to_string(), after: None },
        }
    }
}

/// Reads back to where the channel was read, and to the oldest message that waits. Without a note of how far it was read everything is new
/// that comes.
///
/// # Errors
/// Why it cannot be read.
pub async fn read(bridge: &Bridge, channel: ChannelId) -> Result<Missing, Failed> {
    let passing = |why: String| Failed::Passing { why, after: None };
    let noted = channels::get(&bridge.ops, channel.get()).await.map_err(|failure| passing(failure.to_string()))?;
    let (Some(noted), Some(agent)) = (noted, bridge.rooms.agent_of(channel)) else { return Ok(Missing::default()) };
    let taken = claims::after(&bridge.ops, channel.get(), noted.seen).await;
    let taken: HashSet<u64> = taken.map_err(|failure| passing(failure.to_string()))?.into_iter().collect();
    let slot = bridge.inbound.reading.acquire().await.map_err(|e| passing(e.to_string()))?;
    let waiting: HashMap<MessageId, Asked> = bridge.inbound.desks.waiting_in(channel).into_iter().collect();
    let low = waiting.keys().map(|message| message.get() - 1).min().unwrap_or(u64::MAX).min(noted.seen);
    let (mut found, mut listed, mut more, mut newest, mut before) = (Vec::new(), HashSet::new(), true, 0, None);
    let is_new = |message: &Message| {
        let id = message.id.get();
        id > noted.seen && !taken.contains(&id) && is_asked(bridge, &agent, message)
    };
    let mut reached = u64::MAX;
    for _ in 0..PAGES {
        let page = bridge.rest.history(channel, before).await?;
        newest = newest.max(page.newest.map_or(0, MessageId::get));
        reached = page.oldest.map_or(low, |oldest| oldest.get()).min(reached);
        listed.extend(page.listed);
        found.extend(page.messages.into_iter().filter(|message| message.id.get() > low));
        if !page.more || reached <= low {
            reached = low;
            more = false;
            break;
        }
        if found.iter().filter(|message| is_new(message)).count() > claims::MOST_WAITING as usize {
            break;
        }
        before = page.oldest;
    }
    drop(slot);
    // To whom it is closed Discord shows a channel without any messages.
    if listed.is_empty() && !bridge.rooms.may_read(channel) {
        return Err(Failed::Closed("Chorus lacks Read Message History there".into()));
    }
    let seen_again: HashMap<MessageId, &Message> = found.iter().map(|message| (message.id, message)).collect();
    let changed = waiting.into_iter().filter(|(message, _)| message.get() > reached).filter_map(|(message, asked)| {
        match seen_again.get(&message) {
            // Nothing at all is no sign of what is gone, and what is listed is there, even where it cannot be read.
            None => (!listed.is_empty() && !listed.contains(&message)).then_some((message, Wish::Gone)),
            Some(now) => match heard(bridge, guild(bridge, &agent, now.guild_id), now) {
                // What came with the event, roles for one, is not said here.
                Heard::Asked(now) if !now.says_the_same(&asked) => {
                    Some((message, Wish::Says(Asked { by: asked.by, ..now })))
                }
                _ => None,
            },
        }
    });
    let changed = changed.collect();
    found.retain(|message| is_new(message));
    found.sort_by_key(|message| message.id);
    Ok(Missing { messages: found, more, newest: if newest > noted.seen { newest } else { 0 }, changed })
}

fn is_asked(bridge: &Bridge, agent: &Entry, message: &Message) -> bool {
    heard(bridge, guild(bridge, agent, message.guild_id), message) != Heard::Nothing
}
