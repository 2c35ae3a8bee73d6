//! One try of one post.

use jiff::{SignedDuration, Timestamp};
use serenity::all::{ChannelId, MessageId};

use super::post::{Button, MessageBody, StoredPost};
use super::{NO_ACCESS, NO_PERMISSION, Outbox};
use crate::discord::rest::{MESSAGE_PAGE_SIZE, PostedMessage, RestError};
use crate::ops::discord::outbox::DuePost;

/// A channel, and what one is in.
const UNKNOWN_CHANNEL: u64 = 10_003;
/// A message that is replied to may not be read.
const REPLY_FAILED: [u64; 2] = [50_035, 160_002];

/// For so long Discord knows a message again by its nonce; it says "a few minutes".
const NONCE_LIFETIME: SignedDuration = SignedDuration::from_secs(120);
/// By how much the clocks here and at Discord may differ.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// Answers that are looked through for a message at most.
const MAX_PAGES: usize = 20;
/// When Discord's ids begin, in milliseconds since 1970.
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;

/// Said where the file may not be sent along.
const NO_FILE_NOTE: &str = "-# The file could not be attached: Chorus needs the permission Attach Files here.";
/// Said where a question can not be answered without it.
const UNSEEN_NOTE: &str = " Answer at the terminal: `chorusctl approvals`.";

/// Whether a post may be there already, without our having been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PossibleDuplicate {
    No,
    Since(Timestamp),
}

/// What came of a try.
#[derive(Debug)]
pub enum SendOutcome {
    Posted(MessageId),
    /// It changes a message that is not there any more.
    Obsolete,
    Retry {
        error: RestError,
        /// It may have arrived all the same.
        may_have_arrived: bool,
    },
    /// It was looked for: no earlier try arrived.
    NotFound,
    /// The application may not post here now, or not at all.
    Forbidden(RestError),
    /// Discord will never take it.
    Rejected(RestError),
    ChannelGone(RestError),
}

/// Tries `due` once.
pub async fn try_send(
    posts: &Outbox,
    channel: ChannelId,
    due: &DuePost,
    kept: &StoredPost,
    unsure: PossibleDuplicate,
) -> SendOutcome {
    let result = match due.changes {
        None => create_message(posts, channel, due, kept, unsure).await,
        Some(None) if !kept.anew => return SendOutcome::Obsolete,
        Some(None) => create_message(posts, channel, due, kept, unsure).await,
        Some(Some(message)) => {
            let message = MessageId::new(message.max(1));
            match edit_message(posts, channel, message, &kept.body).await {
                // Somebody deleted it.
                Err(RestError::Gone { code, .. }) if code != UNKNOWN_CHANNEL && kept.anew => {
                    create_message(posts, channel, due, kept, unsure).await
                }
                Err(RestError::Gone { code, .. }) if code != UNKNOWN_CHANNEL => return SendOutcome::Obsolete,
                result => result.map(|()| Some(message)),
            }
        }
    };
    match result {
        Ok(Some(message)) => SendOutcome::Posted(message),
        Ok(None) => SendOutcome::NotFound,
        Err(error) => classify_error(error),
    }
}

fn classify_error(error: RestError) -> SendOutcome {
    match &error {
        RestError::Unauthorized | RestError::Refused { code: NO_ACCESS | NO_PERMISSION, .. } => {
            SendOutcome::Forbidden(error)
        }
        RestError::Gone { code: UNKNOWN_CHANNEL, .. } => SendOutcome::ChannelGone(error),
        RestError::RateLimited { .. } | RestError::Unconnected(_) => {
            SendOutcome::Retry { error, may_have_arrived: false }
        }
        // A page that comes from what stands before Discord.
        RestError::Refused { status: 403, code: 0, .. } => SendOutcome::Retry { error, may_have_arrived: false },
        // What it was answered is not known.
        RestError::Unreadable(_) => SendOutcome::Retry { error, may_have_arrived: true },
        error if error.is_transient() => SendOutcome::Retry { error: error.clone(), may_have_arrived: true },
        _ => SendOutcome::Rejected(error),
    }
}

/// Posts it. `None`: it was looked for and is not there, which took its time; it can be posted now.
async fn create_message(
    posts: &Outbox,
    channel: ChannelId,
    due: &DuePost,
    kept: &StoredPost,
    unsure: PossibleDuplicate,
) -> Result<Option<MessageId>, RestError> {
    if let PossibleDuplicate::Since(since) = unsure
        && posts.0.ops.clock.now().duration_since(since) > NONCE_LIFETIME
    {
        return find_posted(posts, channel, due, kept, since).await;
    }
    let rest = &posts.0.rest;
    let components = kept.body.components();
    let made = rest.create_message(channel, kept.body.as_content(&components), &due.nonce, kept.reply_to).await;
    let made = match made {
        Err(RestError::Refused { status: 400 | 403, code, .. })
            if kept.reply_to.is_some() && REPLY_FAILED.contains(&code) =>
        {
            rest.create_message(channel, kept.body.as_content(&components), &due.nonce, None).await
        }
        made => made,
    };
    match made {
        Err(RestError::Refused { status: 403, code, .. }) if kept.body.file.is_some() && code != 0 => {
            let body = without_file(&kept.body);
            let components = body.components();
            rest.create_message(channel, body.as_content(&components), &due.nonce, kept.reply_to).await.map(Some)
        }
        made => made.map(Some),
    }
}

async fn edit_message(
    posts: &Outbox,
    channel: ChannelId,
    message: MessageId,
    body: &MessageBody,
) -> Result<(), RestError> {
    let rest = &posts.0.rest;
    let components = body.components();
    match rest.edit_message(channel, message, body.as_content(&components)).await {
        Err(RestError::Refused { status: 403, code, .. }) if body.file.is_some() && code != 0 => {
            let body = without_file(body);
            let components = body.components();
            rest.edit_message(channel, message, body.as_content(&components)).await
        }
        result => result,
    }
}

/// The same without its file, and without the buttons that say yes to what stands in it.
fn without_file(body: &MessageBody) -> MessageBody {
    let buttons: Vec<Button> = body.buttons.iter().filter(|button| !button.seen_whole).cloned().collect();
    let unseen = if buttons.len() < body.buttons.len() { UNSEEN_NOTE } else { "" };
    MessageBody { content: format!("{}\n{NO_FILE_NOTE}{unseen}", body.content), file: None, buttons }
}

/// Looks for a post that may have arrived when it was tried before.
async fn find_posted(
    posts: &Outbox,
    channel: ChannelId,
    due: &DuePost,
    kept: &StoredPost,
    since: Timestamp,
) -> Result<Option<MessageId>, RestError> {
    let rest = &posts.0.rest;
    let us = posts.own_user().await?;
    let replied = kept.reply_to.map(MessageId::get);
    let sent = u64::try_from(since.as_millisecond() - MAX_CLOCK_SKEW_MS - DISCORD_EPOCH_MS).unwrap_or(0) << 22;
    let mut after = due.after.max(replied).unwrap_or(sent).max(1);
    for _ in 0..MAX_PAGES {
        let page = rest.messages_after(channel, MessageId::new(after)).await?;
        let same = |found: &&PostedMessage| found.author.id == us && is_same_message(found, kept);
        if let Some(found) = page.iter().find(same) {
            return Ok(Some(found.id));
        }
        match page.last() {
            Some(last) if page.len() >= MESSAGE_PAGE_SIZE => after = last.id.get(),
            _ => break,
        }
    }
    Ok(None)
}

/// Discord cuts off what is blank around a text.
fn is_same_message(found: &PostedMessage, kept: &StoredPost) -> bool {
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
