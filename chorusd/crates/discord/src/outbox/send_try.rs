//! A single try to send a post.

use chorus_engine::ops::discord::DuePost;
use jiff::{SignedDuration, Timestamp};
use serenity::all::{ChannelId, MessageId};

use super::outgoing_message::{Button, MessageBody, StoredPost};
use super::{NO_ACCESS, NO_PERMISSION, Outbox};
use crate::rest::{MESSAGE_PAGE_SIZE, PostedMessage, RestError};

/// Discord's code for an unknown channel.
const UNKNOWN_CHANNEL: u64 = 10_003;
/// Discord's codes for a message that cannot be replied to.
const REPLY_FAILED: [u64; 2] = [50_035, 160_002];

/// How long Discord recognizes a nonce; it says "a few minutes".
const NONCE_LIFETIME: SignedDuration = SignedDuration::from_secs(120);
/// Tolerated difference between this machine's clock and Discord's.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// Pages that are searched for a message at most.
const MAX_PAGES: usize = 20;
/// Start of the time in Discord's ids, in milliseconds since 1970.
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;

/// Shown if the file cannot be attached.
const NO_FILE_NOTE: &str = "-# The file could not be attached: Chorus needs the Attach Files permission here.";
/// Shown if an approval cannot be answered without the file.
const UNSEEN_NOTE: &str =
    " The action can only be denied here; the owner can allow it on the computer that runs Chorus.";

/// Whether an earlier try may have posted the message although its response was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PossibleDuplicate {
    No,
    Since(Timestamp),
}

/// The outcome of a try.
#[derive(Debug)]
pub(super) enum SendOutcome {
    Posted(MessageId),
    /// It edits a message that does not exist any more.
    Obsolete,
    Retry {
        error: RestError,
        /// The try may have succeeded all the same.
        may_have_arrived: bool,
    },
    /// The channel was searched: no earlier try succeeded.
    NotFound,
    /// The application may not post here, for now or permanently.
    Forbidden(RestError),
    /// Discord will never accept the post.
    Rejected(RestError),
    ChannelGone(RestError),
}

/// Tries once to send `due`.
pub(super) async fn try_send(
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
                // Somebody deleted the message.
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
        // The response of a proxy in front of Discord.
        RestError::Refused { status: 403, code: 0, .. } => SendOutcome::Retry { error, may_have_arrived: false },
        // The request arrived, but its response is unknown.
        RestError::Unreadable(_) => SendOutcome::Retry { error, may_have_arrived: true },
        error if error.is_transient() => SendOutcome::Retry { error: error.clone(), may_have_arrived: true },
        _ => SendOutcome::Rejected(error),
    }
}

/// Posts the message. If an earlier try may have succeeded and its nonce has expired, it only searches the channel,
/// which takes time, and returns `None` if the message is not there: it can be posted now.
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

/// Returns the body without its file, and without the buttons that require that the file was seen.
fn without_file(body: &MessageBody) -> MessageBody {
    let buttons: Vec<Button> = body.buttons.iter().filter(|button| !button.seen_whole).cloned().collect();
    let unseen = if buttons.len() < body.buttons.len() { UNSEEN_NOTE } else { "" };
    MessageBody { content: format!("{}\n{NO_FILE_NOTE}{unseen}", body.content), file: None, buttons }
}

/// Searches the channel for a post whose earlier try may have succeeded.
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

/// Compares a message with a post. Discord trims the text.
fn is_same_message(found: &PostedMessage, kept: &StoredPost) -> bool {
    let file =
        kept.body.file.as_ref().is_none_or(|file| found.attachments.iter().any(|sent| sent.filename == file.name));
    // The same text in reply to another message is another post.
    let reply = found.message_reference.as_ref().and_then(|reference| reference.message_id);
    if kept.reply_to.is_some() && reply.is_some() && reply != kept.reply_to {
        return false;
    }
    let content = found.content.trim();
    (content == kept.body.content.trim() && file) || content == without_file(&kept.body).content.trim()
}
