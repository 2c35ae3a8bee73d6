//! The record of a message in the block of data.

use chorus_proto::{Attachment, Author, Message, Role, Source, Usage};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

/// A line of the block of data; [`crate::markdown::MessageRecord`] reads it.
#[derive(Serialize)]
pub(super) struct Record<'a> {
    /// Number of the query that the message opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<u64>,
    /// Number of lines in the text that look like the label of a speaker.
    #[serde(skip_serializing_if = "is_zero")]
    pub labels: u64,
    /// White space before and after the text.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub before: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub after: &'a str,
    /// Ids and names of the tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(&'a str, &'a str)>,
    pub message: MessageMetadata<'a>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

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
