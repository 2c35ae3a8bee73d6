//! Messages as a person sees them.

use serde_json::Value;

use super::messages::{File, LOADING, Message};
use super::state::State;

/// A button under a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    pub custom_id: String,
    pub label: String,
    pub style: u64,
    pub disabled: bool,
}

/// A message with its buttons and files.
#[derive(Debug, Clone)]
pub struct VisibleMessage {
    pub id: u64,
    pub channel: u64,
    /// The author's name.
    pub author: String,
    /// The application wrote it.
    pub is_own: bool,
    pub content: String,
    pub buttons: Vec<Button>,
    pub files: Vec<File>,
    pub embeds: Value,
    pub reply_to: Option<u64>,
    /// The content before each edit.
    pub previous_contents: Vec<String>,
    pub nonce: Option<Value>,
    /// Only one person sees it.
    pub ephemeral: bool,
    /// "… is thinking".
    pub is_thinking: bool,
    /// It notified everybody.
    pub mentions_everyone: bool,
}

impl VisibleMessage {
    pub(super) fn from_message(state: &State, message: &Message) -> Self {
        let buttons =
            message.components.as_array().into_iter().flatten().filter_map(|row| row["components"].as_array());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            id: message.id,
            channel: message.channel,
            author: state.users.get(&message.author).map(|user| user.name.clone()).unwrap_or_default(),
            is_own: message.author == state.application_id,
            content: message.content.clone(),
            buttons: buttons
                .flatten()
                .filter(|component| component["type"] == 2)
                .map(|button| Button {
                    custom_id: text(&button["custom_id"]),
                    label: text(&button["label"]),
                    style: button["style"].as_u64().unwrap_or(0),
                    disabled: button["disabled"] == true,
                })
                .collect(),
            files: message.files.clone(),
            embeds: message.embeds.clone(),
            reply_to: message.reply_to,
            previous_contents: message.previous_contents.clone(),
            nonce: message.nonce.clone(),
            ephemeral: message.ephemeral_for.is_some(),
            is_thinking: message.flags & LOADING != 0,
            mentions_everyone: message.mention_everyone,
        }
    }

    /// Returns the button with this custom id or label; a note in parentheses at the end of the label may be left out.
    #[must_use]
    pub fn button(&self, name: &str) -> Option<&Button> {
        let is_labeled = |label: &str| label.split(" (").next() == Some(name) || label == name;
        self.buttons.iter().find(|button| is_labeled(&button.label) || button.custom_id == name)
    }

    /// Returns how often the message was edited.
    #[must_use]
    pub fn edit_count(&self) -> usize {
        self.previous_contents.len()
    }
}

impl From<&VisibleMessage> for u64 {
    fn from(shown: &VisibleMessage) -> Self {
        shown.id
    }
}
