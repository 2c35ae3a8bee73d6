//! Messages of a conversation, complete and as clients send them.

use crate::wire;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Author role of a message.
#[wire(Copy, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
    ToolResult,
}

impl Role {
    /// Returns the name on the wire: `system`, `user`, `assistant` or `tool_result`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "tool_result",
        }
    }
}

/// A tool call by the assistant.
#[wire]
pub struct ToolCall {
    /// The provider's id of the call; a later turn may reuse it.
    pub id: String,
    pub name: String,
    /// The arguments exactly as received, digit for digit.
    pub params: Box<RawValue>,
}

/// The person or program that wrote a user message.
#[wire(PartialEq, Eq)]
pub struct Author {
    pub id: String,
    pub name: String,
}

/// Origin of a message.
#[wire(Copy, PartialEq, Eq)]
pub enum SourceKind {
    Cli,
    Discord,
    Import,
    Agent,
}

/// Origin of a message, with ids.
#[wire(PartialEq, Eq)]
pub struct Source {
    pub kind: SourceKind,
    #[omit_empty]
    pub channel_id: Option<String>,
    #[omit_empty]
    pub message_id: Option<String>,
    /// The format of an import, for example `claude-code`.
    #[omit_empty]
    pub format: Option<String>,
}

/// A file attached to a message.
#[wire(PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    #[omit_empty]
    pub media_type: Option<String>,
    /// Size in bytes.
    #[omit_empty]
    pub size: Option<u64>,
    #[omit_empty]
    pub path: Option<String>,
    #[omit_empty]
    pub url: Option<String>,
    /// The content itself in base64.
    #[omit_empty]
    pub data: Option<String>,
}

/// Usage of a model call.
#[wire(Default, PartialEq)]
pub struct Usage {
    #[omit_empty]
    pub input_tokens: Option<u64>,
    #[omit_empty]
    pub output_tokens: Option<u64>,
    #[omit_empty]
    pub cache_read_tokens: Option<u64>,
    /// US dollars.
    #[omit_empty]
    pub cost_usd: Option<f64>,
    #[omit_empty]
    pub duration_ms: Option<u64>,
}

/// One entry of a conversation, as it is stored. It never changes.
///
/// Fields that this version does not know are ignored when read; `chorusd` keeps the bytes a message came in, so
/// they are not lost.
#[wire]
pub struct Message {
    /// A UUIDv7, or the id of an imported message.
    pub id: String,
    pub role: Role,
    pub content: String,
    /// RFC 3339, UTC.
    pub timestamp: Timestamp,
    #[omit_empty]
    pub tool_calls: Vec<ToolCall>,
    /// On a tool result: the call that it belongs to.
    #[omit_empty]
    pub tool_call_id: Option<String>,
    #[omit_empty]
    pub is_error: bool,
    /// On a tool result: the name of the tool.
    #[omit_empty]
    pub name: Option<String>,
    #[omit_empty]
    pub author: Option<Author>,
    #[omit_empty]
    pub source: Option<Source>,
    #[omit_empty]
    pub attachments: Vec<Attachment>,
    #[omit_empty]
    pub usage: Option<Usage>,
    /// True for text that Chorus wrote itself.
    #[omit_empty]
    pub generated: bool,
    /// True for the partial reply of an interrupted turn.
    #[omit_empty]
    pub interrupted: bool,
    /// Blocks that must be returned to their provider unchanged (signed thinking, for example).
    #[omit_empty]
    pub provider: Option<Box<RawValue>>,
}

impl Message {
    /// Returns the name of the program that wrote this reply, for example `codex`, if the reply was imported.
    #[must_use]
    pub fn imported_from(&self) -> Option<&str> {
        imported_from(self.role, self.source.as_ref())
    }
}

/// Returns the program that wrote a reply with this source.
fn imported_from(role: Role, source: Option<&Source>) -> Option<&str> {
    source.filter(|_| role == Role::Assistant)?.format.as_deref()
}

/// A message to append. `chorusd` sets missing fields and rejects unknown ones, so that nothing is ignored silently.
#[wire]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[omit_empty]
    pub id: Option<String>,
    #[serde(default = "user")]
    pub role: Role,
    #[serde(default)]
    pub content: String,
    #[omit_empty]
    pub timestamp: Option<Timestamp>,
    #[omit_empty]
    pub tool_calls: Vec<ToolCall>,
    #[omit_empty]
    pub tool_call_id: Option<String>,
    #[omit_empty]
    pub is_error: bool,
    #[omit_empty]
    pub name: Option<String>,
    #[omit_empty]
    pub author: Option<Author>,
    #[omit_empty]
    pub source: Option<Source>,
    #[omit_empty]
    pub attachments: Vec<Attachment>,
    #[omit_empty]
    pub usage: Option<Usage>,
    #[omit_empty]
    pub generated: bool,
    #[omit_empty]
    pub interrupted: bool,
    #[omit_empty]
    pub provider: Option<Box<RawValue>>,
}

impl NewMessage {
    /// Returns the name of the program that wrote this reply, if the reply was imported.
    #[must_use]
    pub fn imported_from(&self) -> Option<&str> {
        imported_from(self.role, self.source.as_ref())
    }
}

/// Deserializes messages from a list of objects. serde alone would also accept a list of values as the fields of a
/// message in their order.
pub(crate) fn objects<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<NewMessage>, D::Error> {
    struct Object(NewMessage);
    struct OnlyMap;
    impl<'de> serde::de::Visitor<'de> for OnlyMap {
        type Value = Object;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a message object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
            NewMessage::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Object)
        }
    }
    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_map(OnlyMap)
        }
    }
    Ok(Vec::<Object>::deserialize(from)?.into_iter().map(|object| object.0).collect())
}

fn user() -> Role {
    Role::User
}

impl NewMessage {
    /// Creates a message of `role` with only text.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            id: None,
            role,
            content: content.into(),
            timestamp: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            is_error: false,
            name: None,
            author: None,
            source: None,
            attachments: Vec::new(),
            usage: None,
            generated: false,
            interrupted: false,
            provider: None,
        }
    }

    /// Completes the message with `id` and `now` where the sender gave none.
    #[must_use]
    pub fn complete(self, id: impl FnOnce() -> String, now: Timestamp) -> Message {
        Message {
            id: self.id.unwrap_or_else(id),
            role: self.role,
            content: self.content,
            timestamp: self.timestamp.unwrap_or(now),
            tool_calls: self.tool_calls,
            tool_call_id: self.tool_call_id,
            is_error: self.is_error,
            name: self.name,
            author: self.author,
            source: self.source,
            attachments: self.attachments,
            usage: self.usage,
            generated: self.generated,
            interrupted: self.interrupted,
            provider: self.provider,
        }
    }
}

impl Message {
    /// Counts the characters of the content and of all tool parameters; token estimates count four characters as one
    /// token.
    #[must_use]
    pub fn char_count(&self) -> u64 {
        let params: usize = self.tool_calls.iter().map(|call| call.params.get().chars().count()).sum();
        (self.content.chars().count() + params) as u64
    }
}
