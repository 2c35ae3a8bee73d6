//! Lines become messages: a reply is gathered from its lines, an answer falls apart into results and words.

use std::collections::HashMap;

use chorus_proto::{Attachment, Message, NewMessage, Role, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::fields::Fields;
use super::super::values::{one_line, provider, raw_list, source, string};
use super::content::{Block, Media, ToolOutput};
use super::line::{Speaker, Talk};

/// A message that may still grow.
#[derive(Debug, Default)]
pub(super) struct Draft {
    texts: Vec<String>,
    calls: Vec<ToolCall>,
    attachments: Vec<Attachment>,
    /// Blocks that are kept as they came.
    blocks: Vec<Box<RawValue>>,
    usage: Option<Usage>,
}

impl Draft {
    /// Adds what one line says; results of tools are handed back.
    pub fn add<'a>(&mut self, talk: Talk<'a>) -> Vec<ToolOutput<'a>> {
        if let Some(usage) = usage(&talk) {
            self.usage = Some(usage);
        }
        let mut results = Vec::new();
        for block in talk.content.0 {
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

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty() && self.attachments.is_empty() && self.blocks.is_empty()
    }

    /// The calls made so far.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The finished message.
    pub fn finish(self, role: Role, id: String, timestamp: Timestamp) -> Message {
        let mut message = NewMessage::text(role, self.texts.join("\n\n"));
        message.tool_calls = self.calls;
        message.attachments = self.attachments;
        message.usage = self.usage;
        message.provider = kept(&self.blocks);
        message.source = Some(source("claude-code"));
        message.complete(|| id, timestamp)
    }
}

/// The result of one call.
pub(super) fn result(
    output: ToolOutput<'_>,
    names: &mut HashMap<String, String>,
    id: String,
    timestamp: Timestamp,
) -> Message {
    let mut message = NewMessage::text(Role::ToolResult, output.text);
    message.is_error = output.is_error;
    message.name = names.remove(output.call.as_ref());
    message.tool_call_id = Some(output.call.into());
    message.attachments = (1..).zip(output.files).map(|(number, file)| file.attachment(number)).collect();
    let blocks: Vec<_> = output.others.into_iter().map(one_line).collect();
    message.provider = kept(&blocks);
    message.source = Some(source("claude-code"));
    message.complete(|| id, timestamp)
}

/// The role of what a speaker says in words.
pub(super) fn role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
        Speaker::System => Role::System,
    }
}

fn kept(blocks: &[Box<RawValue>]) -> Option<Box<RawValue>> {
    if blocks.is_empty() {
        return None;
    }
    provider("anthropic", &[("blocks".to_owned(), raw_list(blocks))])
}

fn usage(talk: &Talk<'_>) -> Option<Usage> {
    let tokens = talk.usage.and_then(Fields::of);
    let count = |name| tokens.as_ref().and_then(|tokens| tokens.count(name));
    let usage = Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cache_read_input_tokens"),
        cost_usd: talk.cost_usd,
        duration_ms: talk.duration_ms,
    };
    (usage != Usage::default()).then_some(usage)
}
