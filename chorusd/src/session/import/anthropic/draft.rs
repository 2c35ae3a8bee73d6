//! Blocks become messages: words, calls and files are one, each result is one of its own.

use chorus_proto::{Attachment, Message, NewMessage, Role, Source, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::fields::Fields;
use super::super::values::{one_line, provider, raw_list, string};
use super::content::{Block, Content, Media, ToolOutput};

/// The API that this shape is of.
pub(in super::super) const ANTHROPIC: &str = "anthropic";

/// A message that may still grow.
#[derive(Debug)]
pub(in super::super) struct Draft {
    /// Whose blocks they are.
    api: &'static str,
    texts: Vec<String>,
    calls: Vec<ToolCall>,
    attachments: Vec<Attachment>,
    /// Blocks that are kept as they came.
    blocks: Vec<Box<RawValue>>,
    usage: Option<Usage>,
    /// Fields without a place.
    kept: Vec<(String, Box<RawValue>)>,
}

impl Draft {
    /// An empty one, for blocks of that API.
    pub fn of(api: &'static str) -> Self {
        let (texts, calls, attachments) = (Vec::new(), Vec::new(), Vec::new());
        Self { api, texts, calls, attachments, blocks: Vec::new(), usage: None, kept: Vec::new() }
    }

    /// Adds what a content says; results of tools are handed back.
    pub fn take<'a>(&mut self, content: Content<'a>) -> Vec<ToolOutput<'a>> {
        let mut results = Vec::new();
        for block in content.0 {
            match block {
                Block::Text(text) => self.texts.push(text.into_owned()),
                Block::Call { id, name, input } => self.calls.push(ToolCall {
                    id: id.into(),
                    name: name.into(),
                    params: input.map_or_else(|| string(""), one_line),
                }),
                Block::Result(output) => results.push(output),
                Block::File(file) => self.attach(file),
                Block::Other(raw) => self.blocks.push(one_line(raw)),
            }
        }
        results
    }

    fn attach(&mut self, file: Media<'_>) {
        self.attachments.push(file.attachment(self.attachments.len() + 1));
    }

    /// Notes what the call cost; the last that says so counts.
    pub fn cost(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.usage = Some(usage);
        }
    }

    /// Keeps a field that has no place in a message.
    pub fn keep(&mut self, name: &str, value: &RawValue) {
        self.kept.push((name.to_owned(), one_line(value)));
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
        message.provider = kept(self.api, &self.blocks, self.kept);
        message.source = Some(source);
        message.complete(|| id, timestamp)
    }
}

/// The result of one call of the tool `name`.
pub(in super::super) fn result(
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
    message.attachments = (1..).zip(output.files).map(|(number, file)| file.attachment(number)).collect();
    let blocks: Vec<_> = output.others.into_iter().map(one_line).collect();
    message.provider = kept(ANTHROPIC, &blocks, Vec::new());
    message.source = Some(source);
    message.complete(|| id, timestamp)
}

fn kept(api: &str, blocks: &[Box<RawValue>], mut fields: Vec<(String, Box<RawValue>)>) -> Option<Box<RawValue>> {
    if !blocks.is_empty() {
        fields.insert(0, ("blocks".to_owned(), raw_list(blocks)));
    }
    provider(api, &fields)
}

/// The tokens of a call, as the API counts them.
pub(in super::super) fn usage(tokens: Option<&RawValue>) -> Usage {
    let tokens = tokens.and_then(Fields::of);
    let count = |name| tokens.as_ref().and_then(|tokens| tokens.count(name));
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cache_read_input_tokens"),
        ..Usage::default()
    }
}
