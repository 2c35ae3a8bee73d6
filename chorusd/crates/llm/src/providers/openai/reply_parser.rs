//! Parses the chunks of a reply.

use std::collections::BTreeMap;

use chorus_proto::Usage;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::super::super::error::CallError;
use super::super::super::reply::{Reply, StopReason};
use super::super::super::sse::Event;
use super::super::super::stream_event::StreamEvent;
use super::super::provider_error::ProviderError;
use super::super::thinking_tags::{SplitText, ThinkingSplitter};
use super::super::tool_calls::{self, PartialToolCall, UniqueIds};
use super::super::{ErrorContext, ITEM_OVERHEAD_BYTES, ParseStep, ReplyParser};
use super::BLOCK_KIND;
use super::chunk::{Chunk, Delta, ToolCallDelta, UsageCounts};

/// Parser with the reply so far.
pub(super) struct CompletionParser {
    from: ErrorContext,
    text: String,
    /// Separates thinking between tags. It is not sent back, because the server has no other form for it.
    thinking: ThinkingSplitter,
    reasoning: String,
    details: Vec<Box<RawValue>>,
    calls: Vec<PartialToolCall>,
    /// Positions in `calls` of the calls that have an index.
    by_index: BTreeMap<u64, usize>,
    /// The ids that the server sent.
    server_ids: Vec<String>,
    ids: UniqueIds,
    usage: UsageCounts,
    finish: Option<String>,
    refused: bool,
    held: usize,
}

impl CompletionParser {
    pub(super) fn new(from: ErrorContext) -> Self {
        Self {
            from,
            text: String::new(),
            thinking: ThinkingSplitter::default(),
            reasoning: String::new(),
            details: Vec::new(),
            calls: Vec::new(),
            by_index: BTreeMap::new(),
            server_ids: Vec::new(),
            ids: UniqueIds::default(),
            usage: UsageCounts::default(),
            finish: None,
            refused: false,
            held: 0,
        }
    }

    fn push_chunk(&mut self, json: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), CallError> {
        let chunk: Chunk = serde_json::from_slice(json).map_err(|e| self.from.malformed_error(&e))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let fault = ProviderError::from_value(error);
            return Err(self.from.error(fault.class(None), None, Some(&fault.message)));
        }
        self.usage = chunk.usage.unwrap_or(std::mem::take(&mut self.usage));
        // Only one reply was requested.
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            self.push_delta(choice.delta.unwrap_or_default(), out);
            self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        Ok(())
    }

    fn push_delta(&mut self, delta: Delta, out: &mut Vec<StreamEvent>) {
        if let Some(thinking) = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty()) {
            self.held += thinking.len();
            self.reasoning.push_str(&thinking);
            out.push(StreamEvent::Thinking(thinking));
        }
        let details = delta.reasoning_details.unwrap_or_default();
        self.held += details.iter().map(|detail| ITEM_OVERHEAD_BYTES + detail.get().len()).sum::<usize>();
        self.details.extend(details);
        let text = delta.content.map(super::chunk::Text::into_string).unwrap_or_default();
        let refusal = delta.refusal.unwrap_or_default();
        self.refused |= !refusal.is_empty();
        let SplitText { thinking, text } = self.thinking.push(text);
        if !thinking.is_empty() {
            self.held += thinking.len();
            out.push(StreamEvent::Thinking(thinking));
        }
        for text in [text, refusal] {
            if !text.is_empty() {
                self.held += text.len();
                self.text.push_str(&text);
                out.push(StreamEvent::Text(text));
            }
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.push_call(call, out);
        }
    }

    fn push_call(&mut self, piece: ToolCallDelta, out: &mut Vec<StreamEvent>) {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let name = function.name.clone().unwrap_or_default();
        let known = match piece.index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        // Some servers send no index, or the index 0 for each call: a different id or name then begins another call.
        let known = known.filter(|at| {
            let other_id = !id.is_empty() && self.server_ids[*at] != id;
            let other_name = id.is_empty() && piece.index.is_none() && !name.is_empty();
            !other_id && !other_name
        });
        let at = known.unwrap_or_else(|| {
            let own = self.ids.make_unique(&id);
            out.push(StreamEvent::ToolCall { id: own.clone(), name: name.clone() });
            self.server_ids.push(id);
            self.calls.push(PartialToolCall { id: own, name, params: String::new() });
            self.calls.len() - 1
        });
        if let Some(index) = piece.index {
            self.by_index.insert(index, at);
        }
        let arguments = function.arguments();
        self.held += ITEM_OVERHEAD_BYTES + arguments.len();
        self.calls[at].params.push_str(&arguments);
    }

    /// The block that is sent back to this provider unchanged.
    fn echoed_block(&mut self) -> Option<Box<RawValue>> {
        let mut block = Map::new();
        if !self.reasoning.is_empty() {
            block.insert("reasoning_content".into(), std::mem::take(&mut self.reasoning).into());
        }
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            let details = details.iter().map(|detail| serde_json::from_str(detail.get()).unwrap_or_default());
            block.insert("reasoning_details".into(), Value::Array(details.collect()));
        }
        let kept = serde_json::json!({"kind": BLOCK_KIND, "provider": self.from.provider, "blocks": [block]});
        if block_is_empty(&kept) { None } else { to_raw_value(&kept).ok() }
    }
}

fn block_is_empty(kept: &Value) -> bool {
    kept["blocks"][0].as_object().is_none_or(Map::is_empty)
}

impl ReplyParser for CompletionParser {
    fn push_event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<ParseStep, CallError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(ParseStep::End);
        }
        if data.is_empty() {
            return Ok(ParseStep::Ping);
        }
        self.push_chunk(data.as_bytes(), out)?;
        Ok(ParseStep::More)
    }

    fn push_body(&mut self, body: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), CallError> {
        match ProviderError::parse(body) {
            Some(fault) => Err(self.from.error(fault.class(None), None, Some(&fault.message))),
            None => self.push_chunk(body, out),
        }
    }

    /// Some servers close the stream without an end event; a reply with a finish reason is complete.
    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn held_bytes(&self) -> usize {
        self.held
    }

    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.usage.prompt_tokens,
            output_tokens: self.usage.completion_tokens,
            cache_read_tokens: self.usage.cached(),
            cost_usd: self.usage.cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
            duration_ms: None,
        }
    }

    fn finish(&mut self) -> Result<Reply, CallError> {
        let stop = match self.finish.take().as_deref() {
            _ if self.refused => StopReason::Refused,
            Some("stop" | "eos" | "end_turn") | None => StopReason::End,
            Some("tool_calls" | "function_call") => StopReason::ToolCalls,
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refused,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let tool_calls = tool_calls::finish_calls(std::mem::take(&mut self.calls), stop == StopReason::MaxTokens);
        // Some servers send `stop` although they wait for tool results.
        let stop = if stop == StopReason::End && !tool_calls.is_empty() { StopReason::ToolCalls } else { stop };
        let provider = self.echoed_block();
        let usage = self.usage();
        let mut content = std::mem::take(&mut self.text);
        content.push_str(&self.thinking.finish());
        Ok(Reply { content, tool_calls, provider, usage, cache_write_tokens: None, stop })
    }
}
