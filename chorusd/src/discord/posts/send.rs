//! One try of one post.

use jiff::{SignedDuration, Timestamp};
use serenity::all::{ChannelId, MessageId};

use super::post::{Body, Kept};
use super::{NO_ACCESS, NO_PERMISSION, Posts};
use crate::discord::rest::{Found, PAGE, RestError};
use crate::ops::discord::outbox::Due;

/// A channel, and what one is in.
const NO_CHANNEL: u64 = 10_003;
/// A message that is replied to may not be read.
const NO_REPLY: [u64; 2] = [50_035, 160_002];

/// For so long Discord knows a message again by its nonce; it says "a few minutes".
const NONCES: SignedDuration = SignedDuration::from_secs(120);
/// By how much the clocks here and at Discord may differ.
const CLOCKS_MS: i64 = 60_000;
/// Answers that are looked through for a message at most.
const PAGES: usize = 20;
/// When Discord's ids begin, in milliseconds since 1970.
const EPOCH: i64 = 1_420_070_400_000;

/// Said where the file may not be sent along.
const NO_FILE: &str = "-# The file could not be attached: Chorus needs the permission Attach Files here.";

/// Whether a post may be there already, without our having been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsure {
    No,
    Since(Timestamp),
}

/// What came of a try.
#[derive(Debug)]
pub enum Outcome {
    There(MessageId),
    /// It changes a message that is not there any more.
    Moot,
    Later {
        error: RestError,
        /// It may have arrived all the same.
        arrived: bool,
    },
    /// It was looked for: no earlier try arrived.
    NotThere,
    /// The application may not post here now, or not at all.
    Barred(RestError),
    /// Discord will never take it.
    Never(RestError),
    NoChannel(RestError),
}

/// Tries `due` once.
pub async fn send(posts: &Posts, channel: ChannelId, due: &Due, kept: &Kept, unsure: Unsure) -> Outcome {
    let result = match due.changes {
        None => create(posts, channel, due, kept, unsure).await,
        Some(None) if !kept.anew => return Outcome::Moot,
        Some(None) => create(posts, channel, due, kept, unsure).await,
        Some(Some(message)) => {
            let message = MessageId::new(message.max(1));
            match edit(posts, channel, message, &kept.body).await {
                // Somebody deleted it.
                Err(RestError::Gone { code, .. }) if code != NO_CHANNEL && kept.anew => {
                    create(posts, channel, due, kept, unsure).await
                }
                Err(RestError::Gone { code, .. }) if code != NO_CHANNEL => return Outcome::Moot,
                result => result.map(|()| Some(message)),
            }
        }
    };
    match result {
        Ok(Some(message)) => Outcome::There(message),
        Ok(None) => Outcome::NotThere,
        Err(error) => judged(error),
    }
}

fn judged(error: RestError) -> Outcome {
    match &error {
        RestError::Unauthorized | RestError::Refused { code: NO_ACCESS | NO_PERMISSION, .. } => Outcome::Barred(error),
        RestError::Gone { code: NO_CHANNEL, .. } => Outcome::NoChannel(error),
        RestError::Limited { .. } | RestError::Unconnected(_) => Outcome::Later { error, arrived: false },
        // A page that comes from what stands before Discord.
        RestError::Refused { status: 403, code: 0, .. } => Outcome::Later { error, arrived: false },
        // What it was answered is not known.
        RestError::Unreadable(_) => Outcome::Later { error, arrived: true },
        error if error.may_pass() => Outcome::Later { error: error.clone(), arrived: true },
        _ => Outcome::Never(error),
    }
}

/// Posts it. `None`: it was looked for and is not there, which took its time; it can be posted now.
async fn create(
    posts: &Posts,
    channel: ChannelId,
    due: &Due,
    kept: &Kept,
    unsure: Unsure,
) -> Result<Option<MessageId>, RestError> {
    if let Unsure::Since(since) = unsure
        && posts.0.ops.clock.now().duration_since(since) > NONCES
    {
        return find(posts, channel, due, kept, since).await;
    }
    let rest = &posts.0.rest;
    let components = kept.body.components();
    let made = rest.create_message(channel, kept.body.looks(&components), &due.nonce, kept.reply_to).await;
    let made = match made {
        Err(RestError::Refused { status: 400 | 403, code, .. })
            if kept.reply_to.is_some() && NO_REPLY.contains(&code) =>
        {
            rest.create_message(channel, kept.body.looks(&components), &due.nonce, None).await
        }
        made => made,
    };
    match made {
        Err(RestError::Refused { status: 403, code, .. }) if kept.body.file.is_some() && code != 0 => {
            let body = without_file(&kept.body);
            rest.create_message(channel, body.looks(&components), &due.nonce, kept.reply_to).await.map(Some)
        }
        made => made.map(Some),
    }
}

async fn edit(posts: &Posts, channel: ChannelId, message: MessageId, body: &Body) -> Result<(), RestError> {
    let rest = &posts.0.rest;
    let components = body.components();
    match rest.edit_message(channel, message, body.looks(&components)).await {
        Err(RestError::Refused { status: 403, code, .. }) if body.file.is_some() && code != 0 => {
            let body = without_file(body);
            rest.edit_message(channel, message, body.looks(&components)).await
        }
        result => result,
    }
}

fn without_file(body: &Body) -> Body {
    Body { content: format!("{}\n{NO_FILE}", body.content), file: None, ..body.clone() }
}

/// Looks for a post that may have arrived when it was tried before.
async fn find(
    posts: &Posts,
    channel: ChannelId,
    due: &Due,
    kept: &Kept,
    since: Timestamp,
) -> Result<Option<MessageId>, RestError> {
    let rest = &posts.0.rest;
    let us = posts.us().await?;
    let replied = kept.reply_to.map(MessageId::get);
    let sent = u64::try_from(since.as_millisecond() - CLOCKS_MS - EPOCH).unwrap_or(0) << 22;
    let mut after = due.after.max(replied).unwrap_or(sent).max(1);
    for _ in 0..PAGES {
        let page = rest.messages_after(channel, MessageId::new(after)).await?;
        let same = |found: &&Found| found.author.id == us && looks_like(found, kept);
        if let Some(found) = page.iter().find(same) {
            return Ok(Some(found.id));
        }
        match page.last() {
            Some(last) if page.len() >= PAGE => after = last.id.get(),
            _ => break,
        }
    }
    Ok(None)
}

/// Discord cuts off what is blank around a text.
fn looks_like(found: &Found, kept: &Kept) -> bool {
    let file =
        kept.body.file.as_ref().is_none_or(|file| found.attachments.iter().any(|sent| sent.filename == file.name));
    // One that replies to another message is the same words to somebody else.
    let reply = found.message_reference.as_ref().and_then(|reference| reference.message_id);
    if kept.reply_to.is_some() && reply.is_some() && reply != kept.reply_to {
        return false;
    }
    let content = found.content.trim();
    (content == kept.body.content.trim() && file) || content == without_file(&kept.body).content.trim()
}
