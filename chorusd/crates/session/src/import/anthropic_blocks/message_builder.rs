//! Builds messages from content blocks. Text, tool calls and files become one message; each tool result becomes a
//! message of its own.

use chorus_proto::{Attachment, Message, NewMessage, Role, Source, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{json_list, json_string, minify_value, provider_object};
use super::super::raw_object::RawObject;
use super::content::{Content, ContentBlock, Media, ToolOutput};

/// The name of Anthropic's API.
pub(in super::super) const ANTHROPIC: &str = "anthropic";

/// A message to which more blocks may be added.
#[derive(Debug)]
pub(in super::super) struct MessageBuilder {
    /// The API whose blocks it holds.
    api: &'static str,
    texts: Vec<String>,
    calls: Vec<ToolCall>,
    attachments: Vec<Attachment>,
    /// Blocks that are kept unchanged.
    blocks: Vec<Box<RawValue>>,
    usage: Option<Usage>,
    /// Fields that a message has no place for.
    extra_fields: Vec<(String, Box<RawValue>)>,
}

impl MessageBuilder {
    /// Creates an empty message for blocks of the given API.
    pub(crate) fn new(api: &'static str) -> Self {
        let (texts, calls, attachments) = (Vec::new(), Vec::new(), Vec::new());
        Self { api, texts, calls, attachments, blocks: Vec::new(), usage: None, extra_fields: Vec::new() }
    }

    /// Adds a content. Returns its tool results, which become messages of their own.
    pub(crate) fn add_content<'a>(&mut self, content: Content<'a>) -> Vec<ToolOutput<'a>> {
        let mut results = Vec::new();
        for block in content.0 {
            match block {
                ContentBlock::Text(text) => self.texts.push(text.into_owned()),
                ContentBlock::Call { id, name, input } => self.calls.push(ToolCall {
                    id: id.into(),
                    name: name.into(),
                    params: input.map_or_else(|| json_string(""), minify_value),
                }),
                ContentBlock::Result(output) => results.push(output),
                ContentBlock::File(file) => self.attach(file),
                ContentBlock::Other(raw) => self.blocks.push(minify_value(raw)),
            }
        }
        results
    }

    fn attach(&mut self, file: Media<'_>) {
        self.attachments.push(file.into_attachment(self.attachments.len() + 1));
    }

    /// Sets the usage of the model call. The last one counts.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.usage = Some(usage);
        }
    }

    /// Keeps a field that a message has no place for.
    pub(crate) fn keep_field(&mut self, name: &str, value: &RawValue) {
        self.extra_fields.push((name.to_owned(), minify_value(value)));
    }

    /// Returns whether it has no blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty() && self.attachments.is_empty() && self.blocks.is_empty()
    }

    /// Returns the tool calls so far.
    pub(crate) fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Builds the message.
    pub(crate) fn finish(self, role: Role, id: String, timestamp: Timestamp, source: Source) -> Message {
        let mut message = NewMessage::text(role, self.texts.join("\n\n"));
        message.tool_calls = self.calls;
        message.attachments = self.attachments;
        message.usage = self.usage;
        message.provider = provider_data(self.api, &self.blocks, self.extra_fields);
        message.source = Some(source);
        message.complete(|| id, timestamp)
    }
}

/// Builds the message for the result of a call of the tool `name`.
pub(in super::super) fn tool_result_message(
    output: ToolOutput<'_>,
    name: Option<String>,
    id: String,
    timestamp: Timestamp,
    source: Source,
) -> Message {
    let mut message = NewMessage::text(Role::ToolResult, output.text);
    message.is_error = output.is_error;
    message.name = name;
    message.tool_call_id = Some(output.call.into());
    message.attachments = (1..).zip(output.files).map(|(number, file)| file.into_attachment(number)).collect();
    let blocks: Vec<_> = output.others.into_iter().map(minify_value).collect();
    message.provider = provider_data(ANTHROPIC, &blocks, Vec::new());
    message.source = Some(source);
    message.complete(|| id, timestamp)
}

fn provider_data(
    api: &str,
    blocks: &[Box<RawValue>],
    mut fields: Vec<(String, Box<RawValue>)>,
) -> Option<Box<RawValue>> {
    if !blocks.is_empty() {
        fields.insert(0, ("blocks".to_owned(), json_list(blocks)));
    }
    provider_object(api, &fields)
}

/// Parses the token counts of Anthropic's API.
pub(in super::super) fn parse_usage(tokens: Option<&RawValue>) -> Usage {
    let tokens = tokens.and_then(RawObject::from_value);
    let count = |name| tokens.as_ref().and_then(|tokens| tokens.get_u64(name));
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cache_read_input_tokens"),
        ..Usage::default()
    }
}
