//! Posts, and how the outbox stores them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chorus_base::error::{Error, Result};
use chorus_engine::ops::discord::NewPost;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serenity::all::{ChannelId, MessageId};
use uuid::Uuid;

use crate::rest::MessageContent;

/// A message to post.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Post {
    pub channel: ChannelId,
    /// The key by which the message can be edited later; `None` if it never is.
    pub about: Option<String>,
    pub body: MessageBody,
    /// The message that it replies to.
    pub reply_to: Option<MessageId>,
}

/// The content of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageBody {
    /// At most 2,000 characters, and not blank.
    pub content: String,
    /// Buttons of one row; at most five.
    pub buttons: Vec<Button>,
    // Serialized even if `None`: an edit that leaves the file out would keep the old one.
    #[serde(default)]
    pub file: Option<File>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Button {
    /// At most 100 characters.
    pub custom_id: String,
    /// At most 80 characters.
    pub label: String,
    pub style: Style,
    #[serde(default)]
    pub disabled: bool,
    /// The button may only stand below the whole action: it is left out if the file with the action cannot be attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen_whole: bool,
}

/// The style of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Style {
    Primary,
    Secondary,
    Success,
    Danger,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    pub name: String,
    #[serde(with = "base64_text")]
    pub bytes: Vec<u8>,
}

/// Discord's limit.
const MAX_BUTTONS_PER_ROW: usize = 5;

impl MessageBody {
    /// A message with text only.
    #[must_use]
    pub(crate) fn from_text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Returns the buttons in the form of Discord's API: rows of five.
    #[must_use]
    pub(crate) fn components(&self) -> Vec<Value> {
        let row = |buttons: &[Button]| json!({"type": 1, "components": buttons.iter().map(Button::to_json).collect::<Vec<_>>()});
        self.buttons.chunks(MAX_BUTTONS_PER_ROW).map(row).collect()
    }

    /// Returns the content of a request; `components` are those of this message.
    pub(crate) fn as_content<'l>(&'l self, components: &'l [Value]) -> MessageContent<'l> {
        let file = self.file.as_ref().map(|file| (&*file.name, &*file.bytes));
        MessageContent { content: &self.content, components, file }
    }
}

impl Button {
    fn to_json(&self) -> Value {
        let style = match self.style {
            Style::Primary => 1,
            Style::Secondary => 2,
            Style::Success => 3,
            Style::Danger => 4,
        };
        json!({"type": 2, "style": style, "label": self.label, "custom_id": self.custom_id, "disabled": self.disabled})
    }
}

/// A post as the outbox stores it. An edit keeps what it does not name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredPost {
    pub body: MessageBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// If the message to edit is gone, post it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}

impl StoredPost {
    /// Encodes the post for the outbox.
    pub(super) fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::internal(format!("cannot store a post: {e}")))
    }
}

impl Post {
    /// Converts the post to a row of the outbox. A row with the same key is replaced.
    pub(crate) fn into_row(self) -> Result<NewPost> {
        let kept = StoredPost { body: self.body, reply_to: self.reply_to, anew: true };
        Ok(NewPost {
            channel_id: self.channel.get(),
            about: self.about,
            body: kept.to_json()?,
            nonce: nonce(),
            notice_at: None,
        })
    }
}

/// Returns a new unique nonce, short enough for Discord.
pub(super) fn nonce() -> String {
    URL_SAFE_NO_PAD.encode(Uuid::new_v4().as_bytes())
}

mod base64_text {
    use base64::Engine as _;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::STANDARD;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}
