//! Messages, and their form in Discord's API.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The flag of messages that only the user of the interaction sees.
pub const EPHEMERAL: u64 = 1 << 6;
/// The flag of deferred responses: "… is thinking".
pub const LOADING: u64 = 1 << 7;

/// An attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub id: u64,
    pub name: String,
    pub kind: Option<String>,
    pub bytes: Vec<u8>,
}

/// A message of a channel.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: u64,
    pub channel: u64,
    /// The id of a user or a webhook.
    pub author: u64,
    pub webhook: Option<u64>,
    /// 0 is a message of a user, 19 a reply, 20 the response to a command; other values are system messages, for
    /// example that somebody joined.
    pub kind: u64,
    pub content: String,
    pub at: Timestamp,
    pub edited: Option<Timestamp>,
    /// The content before each edit.
    pub previous_contents: Vec<String>,
    pub components: Value,
    pub embeds: Value,
    pub files: Vec<File>,
    pub nonce: Option<Value>,
    pub flags: u64,
    pub reply_to: Option<u64>,
    pub mentions: Vec<u64>,
    pub mention_everyone: bool,
    /// The metadata of the interaction that it responds to.
    pub interaction: Option<Value>,
    /// The only user who sees it.
    pub ephemeral_for: Option<u64>,
}

impl Message {
    pub fn new(id: u64, channel: u64, author: u64, content: &str) -> Self {
        Self {
            id,
            channel,
            author,
            webhook: None,
            kind: 0,
            content: content.to_owned(),
            at: Timestamp::now(),
            edited: None,
            previous_contents: Vec::new(),
            components: json!([]),
            embeds: json!([]),
            files: Vec::new(),
            nonce: None,
            flags: 0,
            reply_to: None,
            mentions: Vec::new(),
            mention_everyone: false,
            interaction: None,
            ephemeral_for: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.files.is_empty()
            && is_empty_list(&self.embeds)
            && is_empty_list(&self.components)
    }

    /// Returns the JSON without author, member and referenced message, which `State::message_json` adds. `base` is the
    /// URL of the attachments.
    pub fn to_json(&self, base: &str) -> Value {
        let files: Vec<Value> = self.files.iter().map(|file| self.file_json(file, base)).collect();
        let mut json = json!({
            "id": self.id.to_string(), "channel_id": self.channel.to_string(), "type": self.kind, "content": self.content,
            "timestamp": self.at.to_string(), "edited_timestamp": self.edited.map(|at| at.to_string()), "tts": false,
            "mention_everyone": self.mention_everyone, "mention_roles": [], "attachments": files,
            "embeds": self.embeds, "components": self.components, "pinned": false, "flags": self.flags,
        });
        if let Some(id) = self.webhook {
            json["webhook_id"] = id.to_string().into();
        }
        if let Some(nonce) = &self.nonce {
            json["nonce"] = nonce.clone();
        }
        if let Some(interaction) = &self.interaction {
            json["interaction_metadata"] = interaction.clone();
        }
        json
    }

    fn file_json(&self, file: &File, base: &str) -> Value {
        let url = format!("{base}/attachments/{}/{}/{}", self.channel, file.id, file.name);
        let mut json = json!({
            "id": file.id.to_string(), "filename": file.name, "size": file.bytes.len(), "url": url, "proxy_url": url,
        });
        if let Some(kind) = &file.kind {
            json["content_type"] = kind.clone().into();
        }
        json
    }
}

fn is_empty_list(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

/// Returns the ids of the users that a text mentions.
#[must_use]
pub fn mentioned_users(text: &str) -> Vec<u64> {
    let named =
        text.split("<@").skip(1).filter_map(|rest| rest.split_once('>')?.0.trim_start_matches('!').parse().ok());
    let mut named: Vec<u64> = named.collect();
    named.sort_unstable();
    named.dedup();
    named
}
