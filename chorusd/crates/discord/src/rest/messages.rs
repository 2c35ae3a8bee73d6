//! Messages of channels.

use super::{Request, Route};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serenity::all::{ChannelId, MessageId, UserId};

use super::{RestClient, RestError};

/// The content of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageContent<'l> {
    pub content: &'l str,
    /// In the form of Discord's API: rows of buttons.
    pub components: &'l [Value],
    /// Name and bytes.
    pub file: Option<(&'l str, &'l [u8])>,
}

/// The fields of a message that are used.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PostedMessage {
    pub id: MessageId,
    pub content: String,
    pub author: Author,
    #[serde(default)]
    pub attachments: Vec<AttachmentName>,
    /// The message that it replies to.
    #[serde(default)]
    pub message_reference: Option<MessageReference>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MessageReference {
    #[serde(default)]
    pub message_id: Option<MessageId>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Author {
    pub id: UserId,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AttachmentName {
    pub filename: String,
}

#[derive(Debug, Deserialize)]
struct CreatedId {
    id: MessageId,
}

/// Messages of one page at most.
pub(crate) const MESSAGE_PAGE_SIZE: usize = 100;

#[derive(Debug, Serialize)]
struct CreateBody<'l> {
    content: &'l str,
    components: &'l [Value],
    nonce: &'l str,
    enforce_nonce: bool,
    allowed_mentions: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_reference: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct EditBody<'l> {
    content: &'l str,
    components: &'l [Value],
    allowed_mentions: Value,
    attachments: Vec<Value>,
}

impl RestClient {
    /// Posts a message. If the `nonce` was used within the last few minutes, returns the message that it created.
    pub(crate) async fn create_message(
        &self,
        channel: ChannelId,
        looks: MessageContent<'_>,
        nonce: &str,
        reply_to: Option<MessageId>,
    ) -> Result<MessageId, RestError> {
        let created = CreateBody {
            content: looks.content,
            components: looks.components,
            nonce,
            enforce_nonce: true,
            allowed_mentions: no_mentions(),
            message_reference: reply_to.map(|id| json!({"message_id": id, "fail_if_not_exists": false})),
            attachments: attachment_list(looks.file),
        };
        let route = Route::ChannelMessages { channel_id: channel };
        let made: CreatedId = self.call(Request::with_file(Method::POST, route, &created, looks.file)?).await?;
        Ok(made.id)
    }

    /// Edits a message of Chorus.
    pub(crate) async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        looks: MessageContent<'_>,
    ) -> Result<(), RestError> {
        let edited = EditBody {
            content: looks.content,
            components: looks.components,
            allowed_mentions: no_mentions(),
            attachments: attachment_list(looks.file),
        };
        let route = Route::ChannelMessage { channel_id: channel, message_id: message };
        self.execute(Request::with_file(Method::PATCH, route, &edited, looks.file)?).await
    }

    /// Shows the typing indicator, for ten seconds or until a message is posted.
    pub(crate) async fn trigger_typing(&self, channel_id: ChannelId) -> Result<(), RestError> {
        self.execute(Request::new(Method::POST, Route::ChannelTyping { channel_id })).await
    }

    /// Returns the id of Chorus's own user.
    pub(crate) async fn own_user_id(&self) -> Result<UserId, RestError> {
        let us: Author = self.call(Request::get(Route::UserMe)).await?;
        Ok(us.id)
    }

    /// Returns messages of a channel after `after`, the oldest first; at most [`MESSAGE_PAGE_SIZE`].
    pub(crate) async fn messages_after(
        &self,
        channel: ChannelId,
        after: MessageId,
    ) -> Result<Vec<PostedMessage>, RestError> {
        let params = vec![("after", after.to_string()), ("limit", MESSAGE_PAGE_SIZE.to_string())];
        let list = Request::get(Route::ChannelMessages { channel_id: channel }).query(params);
        let mut found: Vec<PostedMessage> = self.call(list).await?;
        found.sort_by_key(|message| message.id);
        Ok(found)
    }
}

/// Messages of Chorus never notify the people that they mention.
fn no_mentions() -> Value {
    json!({"parse": []})
}

fn attachment_list(file: Option<(&str, &[u8])>) -> Vec<Value> {
    file.iter().map(|(name, _)| json!({"id": 0, "filename": name})).collect()
}
