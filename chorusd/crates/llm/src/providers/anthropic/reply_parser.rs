//! Parses the stream events of a reply: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

use std::collections::BTreeMap;

use chorus_proto::Usage;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::super::super::error::CallError;
use super::super::super::reply::{Reply, StopReason};
use super::super::super::sse::Event;
use super::super::super::stream_event::StreamEvent;
use super::super::provider_error::ProviderError;
use super::super::tool_calls::{self, PartialToolCall, UniqueIds};
use super::super::{ErrorContext, ITEM_OVERHEAD_BYTES, ParseStep, ReplyParser};
use super::BLOCK_KIND;

/// Parser with the reply so far.
pub(super) struct MessagesParser {
    from: ErrorContext,
    text: String,
    blocks: BTreeMap<u64, Block>,
    ids: UniqueIds,
    usage: UsageCounts,
    stop: Option<String>,
    ended: bool,
    held: usize,
}

enum Block {
    Text,
    /// Thinking, reassembled as the block of a complete reply.
    Thinking(Map<String, Value>),
    ToolCall(PartialToolCall),
    Other,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct UsageCounts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamPayload {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    MessageDelta {
        delta: End,
        #[serde(default)]
        usage: UsageCounts,
    },
    MessageStop,
    Ping,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: UsageCounts,
}

#[derive(Deserialize)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    Params { partial_json: String },
    #[serde(other)]
    Other,
}

/// A complete reply.
#[derive(Deserialize)]
struct FullMessage {
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: UsageCounts,
}

/// The part of a block that must keep its digits.
#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

impl MessagesParser {
    pub(super) fn new(from: ErrorContext) -> Self {
        Self {
            from,
            text: String::new(),
            blocks: BTreeMap::new(),
            ids: UniqueIds::default(),
            usage: UsageCounts::default(),
            stop: None,
            ended: false,
            held: 0,
        }
    }

    /// Starts a block. `params` is set if the complete reply came at once.
    fn start_block(&mut self, index: u64, block: Value, params: Option<&RawValue>, out: &mut Vec<StreamEvent>) {
        let Value::Object(mut block) = block else { return };
        self.held += ITEM_OVERHEAD_BYTES;
        let mut take = |key: &str| match block.get_mut(key) {
            Some(Value::String(text)) => std::mem::take(text),
            _ => String::new(),
        };
        let begun = match &*take("type") {
            "text" => {
                let text = take("text");
                self.separate_paragraph(out);
                self.push_text(text, out);
                Block::Text
            }
            "tool_use" => {
                let (id, name) = (self.ids.make_unique(&take("id")), take("name"));
                out.push(StreamEvent::ToolCall { id: id.clone(), name: name.clone() });
                // The `input` of a streamed block is empty; its pieces follow.
                Block::ToolCall(PartialToolCall {
                    id,
                    name,
                    params: params.map(|params| params.get().to_owned()).unwrap_or_default(),
                })
            }
            kind @ ("thinking" | "redacted_thinking") => {
                block.insert("type".into(), kind.into());
                if let Some(thinking) = block.get("thinking").and_then(Value::as_str).filter(|text| !text.is_empty()) {
                    out.push(StreamEvent::Thinking(thinking.to_owned()));
                }
                Block::Thinking(block)
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, begun);
    }

    /// Starts a new paragraph if text follows a tool call.
    fn separate_paragraph(&mut self, out: &mut Vec<StreamEvent>) {
        let after_text = self.blocks.values().next_back().is_none_or(|last| matches!(last, Block::Text));
        if !after_text && !self.text.is_empty() {
            self.push_text("\n\n".to_owned(), out);
        }
    }

    fn push_text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.held += text.len();
            self.text.push_str(&text);
            out.push(StreamEvent::Text(text));
        }
    }

    fn apply_delta(&mut self, index: u64, delta: Delta, out: &mut Vec<StreamEvent>) {
        let append = |block: &mut Map<String, Value>, key: &str, more: &str| match block.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => _ = block.insert(key.to_owned(), more.into()),
        };
        match (delta, self.blocks.get_mut(&index)) {
            (Delta::Text { text }, _) => self.push_text(text, out),
            (Delta::Thinking { thinking }, Some(Block::Thinking(block))) => {
                self.held += thinking.len();
                append(block, "thinking", &thinking);
                out.push(StreamEvent::Thinking(thinking));
            }
            (Delta::Signature { signature }, Some(Block::Thinking(block))) => {
                self.held += signature.len();
                append(block, "signature", &signature);
            }
            (Delta::Params { partial_json }, Some(Block::ToolCall(call))) => {
                self.held += partial_json.len();
                call.params.push_str(&partial_json);
            }
            _ => {}
        }
    }

    /// Later counts replace earlier ones, because they are totals.
    fn update_usage(&mut self, counts: UsageCounts) {
        let mine = &mut self.usage;
        mine.input_tokens = counts.input_tokens.or(mine.input_tokens);
        mine.output_tokens = counts.output_tokens.or(mine.output_tokens);
        mine.cache_creation_input_tokens = counts.cache_creation_input_tokens.or(mine.cache_creation_input_tokens);
        mine.cache_read_input_tokens = counts.cache_read_input_tokens.or(mine.cache_read_input_tokens);
    }
}

impl ReplyParser for MessagesParser {
    fn push_event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<ParseStep, CallError> {
        let said: StreamPayload = serde_json::from_str(&event.data).map_err(|e| self.from.malformed_error(&e))?;
        match said {
            StreamPayload::MessageStart { message } => self.update_usage(message.usage),
            StreamPayload::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block, None, out)
            }
            StreamPayload::ContentBlockDelta { index, delta } => self.apply_delta(index, delta, out),
            StreamPayload::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.update_usage(usage);
            }
            StreamPayload::MessageStop => {
                self.ended = true;
                return Ok(ParseStep::End);
            }
            StreamPayload::Ping => return Ok(ParseStep::Ping),
            StreamPayload::Error { error } => {
                let fault = ProviderError::from_value(error);
                return Err(self.from.error(fault.class(None), None, Some(&fault.message)));
            }
            StreamPayload::Other => {}
        }
        Ok(ParseStep::More)
    }

    fn push_body(&mut self, body: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), CallError> {
        if let Some(fault) = ProviderError::parse(body) {
            return Err(self.from.error(fault.class(None), None, Some(&fault.message)));
        }
        let whole: FullMessage = serde_json::from_slice(body).map_err(|e| self.from.malformed_error(&e))?;
        for (index, block) in whole.content.into_iter().enumerate() {
            let read = |e: serde_json::Error| self.from.malformed_error(&e);
            let value = serde_json::from_str(block.get()).map_err(read)?;
            let input: Input = serde_json::from_str(block.get()).map_err(read)?;
            self.start_block(index as u64, value, input.input.as_deref(), out);
        }
        self.stop = whole.stop_reason;
        self.update_usage(whole.usage);
        self.ended = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ended
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn held_bytes(&self) -> usize {
        self.held
    }

    fn usage(&self) -> Usage {
        let counts = self.usage;
        let input = [counts.input_tokens, counts.cache_creation_input_tokens, counts.cache_read_input_tokens];
        Usage {
            input_tokens: counts.input_tokens.map(|_| input.into_iter().flatten().fold(0, u64::saturating_add)),
            output_tokens: counts.output_tokens,
            cache_read_tokens: counts.cache_read_input_tokens,
            ..Usage::default()
        }
    }

    fn finish(&mut self) -> Result<Reply, CallError> {
        let stop = match self.stop.take().as_deref() {
            Some("end_turn" | "stop_sequence") | None => StopReason::End,
            Some("tool_use") => StopReason::ToolCalls,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refused,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let (mut begun, mut kept) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block {
                Block::ToolCall(call) => begun.push(call),
                Block::Thinking(block) => kept.push(block),
                Block::Text | Block::Other => {}
            }
        }
        let tool_calls = tool_calls::finish_calls(begun, stop == StopReason::MaxTokens);
        let provider: Option<Box<RawValue>> = if kept.is_empty() {
            None
        } else {
            to_raw_value(&json!({"kind": BLOCK_KIND, "provider": self.from.provider, "blocks": kept})).ok()
        };
        let usage = self.usage();
        let stop = if stop == StopReason::End && !tool_calls.is_empty() { StopReason::ToolCalls } else { stop };
        let content = std::mem::take(&mut self.text);
        let cache_write_tokens = self.usage.cache_creation_input_tokens;
        Ok(Reply { content, tool_calls, provider, usage, cache_write_tokens, stop })
    }
}
