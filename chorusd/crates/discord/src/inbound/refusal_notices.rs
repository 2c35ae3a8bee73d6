//! Service messages: what Chorus posts about messages that it does not answer.

use chorus_engine::ops::discord::NewPost;
use serenity::model::id::{ChannelId, MessageId};

use super::MAX_WAITING_CLAIMS;
use crate::outbox::{MessageBody, Post};

/// The agent's queue is full. Posted once, until there is room.
pub(super) fn queue_full(channel: ChannelId, message: MessageId) -> Option<NewPost> {
    let content = format!(
        "{MAX_WAITING_CLAIMS} messages wait for this agent already: this one was not taken, and others are not until some are answered. \
         Send it again then."
    );
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
        "{many} written here while Chorus was away and will not be answered: it takes up the newest {MAX_WAITING_CLAIMS}."
    );
    to_row(Post { channel, about: None, body: MessageBody::from_text(content), reply_to: None }).into_iter().collect()
}

/// Discord withholds the content of messages. Posted once in a channel.
pub(super) fn content_withheld(channel: ChannelId) -> Option<NewPost> {
    let content = "Chorus cannot read what you write here. Whoever runs it has to turn on the Message Content intent: Discord's \
                   developer portal, the application, Bot, Message Content Intent; then restart the daemon.";
    let about = Some(format!("unread:{channel}"));
    to_row(Post { channel, about, body: MessageBody::from_text(content), reply_to: None })
}

/// A claimed message cannot be parsed any more.
pub(super) fn claim_unreadable(channel: ChannelId, message: Option<MessageId>) -> Option<NewPost> {
    let content = "This message was kept, but cannot be read any more, so it is not answered. Send it again.";
    to_row(Post { channel, about: None, body: MessageBody::from_text(content), reply_to: message })
}

/// Converts a post to a row of the outbox; logs an error instead of returning it.
fn to_row(post: Post) -> Option<NewPost> {
    post.into_row().inspect_err(|failure| tracing::warn!(%failure, "a line is not said")).ok()
}
