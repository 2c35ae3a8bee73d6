//! The metadata of a message, which the comment before it holds.

use chorus_proto::{Attachment, Author, Message, Role, Source, Usage};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

/// All fields of a message except its text, its tool calls and the data of its images.
#[derive(Serialize)]
pub(super) struct MessageMetadata<'a> {
    id: &'a str,
    role: Role,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a Author>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a Source>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    generated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a RawValue>,
}

impl<'a> MessageMetadata<'a> {
    pub(super) fn new(message: &'a Message) -> Self {
        // Leaves out the data of images, which nobody can read.
        let attachments = message.attachments.iter().map(|of| Attachment { data: None, ..of.clone() });
        Self {
            id: &message.id,
            role: message.role,
            timestamp: message.timestamp,
            tool_call_id: message.tool_call_id.as_deref(),
            is_error: message.is_error,
            name: message.name.as_deref(),
            author: message.author.as_ref(),
            source: message.source.as_ref(),
            attachments: attachments.collect(),
            usage: message.usage.as_ref(),
            generated: message.generated,
            interrupted: message.interrupted,
            provider: message.provider.as_deref(),
        }
    }
}
