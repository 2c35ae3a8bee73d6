//! Blocks become messages: words, calls and files are one, each result is one of its own.

use chorus_proto::{Attachment, Message, NewMessage, Role, Source, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{json_list, json_string, minify_value, provider_object};
use super::super::raw_object::RawObject;
use super::content::{Content, ContentBlock, Media, ToolOutput};

/// The API that this shape is of.
pub(in super::super) const ANTHROPIC: &str = "anthropic";

/// A message that may still grow.
#[derive(Debug)]
pub(in super::super) struct MessageBuilder {
    /// Whose blocks they are.
    api: &'static str,
    texts: Vec<String>,
    calls: Vec<ToolCall>,
    attachments: Vec<Attachment>,
    /// Blocks that are kept as they came.
    blocks: Vec<Box<RawValue>>,
    usage: Option<Usage>,
    /// Fields without a place.
    extra_fields: Vec<(String, Box<RawValue>)>,
}

impl MessageBuilder {
    /// An empty one, for blocks of that API.
    pub fn new(api: &'static str) -> Self {
        let (texts, calls, attachments) = (Vec::new(), Vec::new(), Vec::new());
        Self { api, texts, calls, attachments, blocks: Vec::new(), usage: None, extra_fields: Vec::new() }
    }

    /// Adds what a content says; results of tools are handed back.
    pub fn add_content<'a>(&mut self, content: Content<'a>) -> Vec<ToolOutput<'a>> {
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

    /// Notes what the call cost; the last that says so counts.
    pub fn set_usage(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.usage = Some(usage);
        }
    }

    /// Keeps a field that has no place in a message.
    pub fn keep_field(&mut self, name: &str, value: &RawValue) {
        self.extra_fields.push((name.to_owned(), minify_value(value)));
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty() && self.attachments.is_empty() && self.blocks.is_empty()
    }

    /// The calls made so far.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The finished message.
    pub fn finish(self, role: Role, id: String, timestamp: Timestamp, source: Source) -> Message {
        let mut message = NewMessage::text(role, self.texts.join("\n\n"));
        message.tool_calls = self.calls;
        message.attachments = self.attachments;
        message.usage = self.usage;
        message.provider = provider_data(self.api, &self.blocks, self.extra_fields);
        message.source = Some(source);
        message.complete(|| id, timestamp)
    }
}

/// The result of one call of the tool `name`.
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

/// The tokens of a call, as the API counts them.
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
