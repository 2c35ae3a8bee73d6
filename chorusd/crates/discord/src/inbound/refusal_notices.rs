//! Service messages: what Chorus posts about messages that it does not answer.

use chorus_engine::ops::discord::NewPost;
use serenity::model::id::{ChannelId, MessageId};

use super::MAX_WAITING_CLAIMS;
use crate::outbox::{MessageBody, Post};

/// The agent's queue is full. Posted once, until there is room.
pub(super) fn queue_full(channel: ChannelId, message: MessageId) -> Option<NewPost> {
    let content = format!("Queue full ({MAX_WAITING_CLAIMS} messages). Please resend later.");
    let (about, body) = (Some(format!("full:{channel}")), MessageBody::from_text(content));
    to_row(Post { channel, about, body, reply_to: Some(message) })
}

/// More messages were missed than are backfilled.
pub(super) fn skipped_messages(channel: ChannelId, messages: usize, more: bool) -> Vec<NewPost> {
    let many = match (messages, more) {
        (0, _) => "Older messages were".to_owned(),
        (1, false) => "1 older message was".to_owned(),
        (messages, false) => format!("{messages} older messages were"),
        (messages, true) => format!("More than {messages} older messages were"),
    };
    let content = format!(
        "{many} sent while Chorus was offline and will not be answered. Chorus answers only the newest {MAX_WAITING_CLAIMS}."
    );
    to_row(Post { channel, about: None, body: MessageBody::from_text(content), reply_to: None }).into_iter().collect()
}

/// Discord withholds the content of messages. Posted once in a channel.
pub(super) fn content_withheld(channel: ChannelId) -> Option<NewPost> {
    let content = "Chorus cannot read messages here. Its owner must enable the Message Content intent in Discord's developer \
                   portal (Bot > Message Content Intent) and then restart Chorus.";
    let about = Some(format!("unread:{channel}"));
    to_row(Post { channel, about, body: MessageBody::from_text(content), reply_to: None })
}

/// A claimed message cannot be parsed any more.
pub(super) fn claim_unreadable(channel: ChannelId, message: Option<MessageId>) -> Option<NewPost> {
    let content = "Chorus cannot read this saved message and will not answer it. Please send it again.";
    to_row(Post { channel, about: None, body: MessageBody::from_text(content), reply_to: message })
}

/// Converts a post to a row of the outbox; logs an error instead of returning it.
fn to_row(post: Post) -> Option<NewPost> {
    post.into_row().inspect_err(|failure| tracing::warn!(%failure, "cannot post a notice")).ok()
}
