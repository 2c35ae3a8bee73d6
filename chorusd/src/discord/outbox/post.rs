//! What is posted, and how the outbox keeps it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serenity::all::{ChannelId, MessageId};
use uuid::Uuid;

use crate::discord::rest::MessageContent;
use crate::error::{Error, Result};
use crate::ops::discord::outbox::NewPost;

/// Something to post.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    pub channel: ChannelId,
    /// What a later change finds it by; `None`: it is never changed.
    pub about: Option<String>,
    pub body: MessageBody,
    /// The message that it answers.
    pub reply_to: Option<MessageId>,
}

/// What a message looks like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageBody {
    /// At most 2,000 characters, and not blank.
    pub content: String,
    /// In one row; at most five.
    pub buttons: Vec<Button>,
    // Written even where there is none: what is left out stays as it was.
    #[serde(default)]
    pub file: Option<File>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// At most 100 characters.
    pub custom_id: String,
    /// At most 80 characters.
    pub label: String,
    pub style: Style,
    #[serde(default)]
    pub disabled: bool,
    /// Only below the whole of what it is about: it goes where the file that has it cannot be sent along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen_whole: bool,
}

/// The colour of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    Primary,
    Secondary,
    Success,
    Danger,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    #[serde(with = "base64_text")]
    pub bytes: Vec<u8>,
}

impl MessageBody {
    /// Only text.
    #[must_use]
    pub fn from_text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// The buttons as Discord has them.
    #[must_use]
    pub fn components(&self) -> Vec<Value> {
        if self.buttons.is_empty() {
            return Vec::new();
        }
        let buttons: Vec<Value> = self.buttons.iter().map(Button::to_json).collect();
        vec![json!({"type": 1, "components": buttons})]
    }

    /// As a request has it; `components` are its own.
    pub fn as_content<'l>(&'l self, components: &'l [Value]) -> MessageContent<'l> {
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

/// A row of the outbox. What a change leaves out stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredPost {
    pub body: MessageBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Where the message that it changes is gone, it is posted anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}

impl StoredPost {
    /// As the outbox has it.
    ///
    /// # Errors
    /// `internal`: JSON does not know it, which cannot be.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::internal(format!("a post cannot be kept: {e}")))
    }
}

impl Post {
    /// Its row. One that is about the same as a row that is there takes that one's place.
    ///
    /// # Errors
    /// As of [`Kept::json`].
    pub fn into_row(self) -> Result<NewPost> {
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

/// Never the same twice, and short enough for Discord.
pub fn nonce() -> String {
    URL_SAFE_NO_PAD.encode(Uuid::new_v4().as_bytes())
}

mod base64_text {
    use base64::Engine as _;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::STANDARD;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}
