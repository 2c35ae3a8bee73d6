//! What is said in a channel about messages that are not answered.

use serenity::model::id::{ChannelId, MessageId};

use crate::discord::outbox::{MessageBody, Post};
use crate::ops::discord::NewPost;
use crate::ops::discord::claims::MAX_WAITING_CLAIMS;

/// Too many wait. Said once, until there is room.
pub fn queue_full(channel: ChannelId, message: MessageId) -> Option<NewPost> {
    let content = format!(
        "{MAX_WAITING_CLAIMS} messages wait for this agent already: this one was not taken, and others are not until some are answered. \
         Send it again then."
    );
    let (about, body) = (Some(format!("full:{channel}")), MessageBody::from_text(content));
    to_row(Post { channel, about, body, reply_to: Some(message) })
}

/// What came while nobody listened was too much.
pub fn skipped_messages(channel: ChannelId, messages: usize, more: bool) -> Vec<NewPost> {
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

/// Discord does not say what people write. Said once in a channel.
pub fn content_withheld(channel: ChannelId) -> Option<NewPost> {
    let content = "Chorus cannot read what you write here. Whoever runs it has to turn on the Message Content intent: Discord's \
                   developer portal, the application, Bot, Message Content Intent; then restart the daemon.";
    let about = Some(format!("unread:{channel}"));
    to_row(Post { channel, about, body: MessageBody::from_text(content), reply_to: None })
}

/// What was taken up cannot be read any more.
pub fn claim_unreadable(channel: ChannelId, message: Option<MessageId>) -> Option<NewPost> {
    let content = "This message was kept, but cannot be read any more, so it is not answered. Send it again.";
    to_row(Post { channel, about: None, body: MessageBody::from_text(content), reply_to: message })
}

/// A line that cannot be kept is not said.
fn to_row(post: Post) -> Option<NewPost> {
    post.into_row().inspect_err(|failure| tracing::warn!(%failure, "a line is not said")).ok()
}
