//! The chunks of an answer.

use std::collections::BTreeMap;

use chorus_proto::Usage;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::super::super::error::CallError;
use super::super::super::output::Output;
use super::super::super::reply::{Reply, Stop};
use super::super::super::sse::Event;
use super::super::calls::{self, Begun, Ids};
use super::super::refusal::Fault;
use super::super::think::{Parts, Thinking};
use super::super::{Named, Reader, SMALL, Step};
use super::KIND;
use super::parts::{Call, Chunk, Counts, Delta};

/// An answer as far as it has come.
pub struct Completion {
    from: Named,
    text: String,
    /// Takes out what a model thinks between tags. It does not go back: the server knows no other way to be given it.
    thinking: Thinking,
    reasoning: String,
    details: Vec<Box<RawValue>>,
    calls: Vec<Begun>,
    /// Where the calls are that come with an index.
    by_index: BTreeMap<u64, usize>,
    /// The ids as the server gave them.
    given: Vec<String>,
    ids: Ids,
    usage: Counts,
    finish: Option<String>,
    refused: bool,
    held: usize,
}

impl Completion {
    pub fn new(from: Named) -> Self {
        Self {
            from,
            text: String::new(),
            thinking: Thinking::default(),
            reasoning: String::new(),
            details: Vec::new(),
            calls: Vec::new(),
            by_index: BTreeMap::new(),
            given: Vec::new(),
            ids: Ids::default(),
            usage: Counts::default(),
            finish: None,
            refused: false,
            held: 0,
        }
    }

    fn chunk(&mut self, json: &[u8], out: &mut Vec<Output>) -> Result<(), CallError> {
        let chunk: Chunk = serde_json::from_slice(json).map_err(|e| self.from.malformed(&e))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let fault = Fault::of(error);
            return Err(self.from.failure(fault.class(None), None, Some(&fault.message)));
        }
        self.usage = chunk.usage.unwrap_or(std::mem::take(&mut self.usage));
        // One answer was asked for.
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            self.delta(choice.delta.unwrap_or_default(), out);
            self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<Output>) {
        if let Some(thinking) = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty()) {
            self.held += thinking.len();
            self.reasoning.push_str(&thinking);
            out.push(Output::Thinking(thinking));
        }
        let details = delta.reasoning_details.unwrap_or_default();
        self.held += details.iter().map(|detail| SMALL + detail.get().len()).sum::<usize>();
        self.details.extend(details);
        let text = delta.content.map(super::parts::Text::into_string).unwrap_or_default();
        let refusal = delta.refusal.unwrap_or_default();
        self.refused |= !refusal.is_empty();
        let Parts { thinking, text } = self.thinking.push(text);
        if !thinking.is_empty() {
            self.held += thinking.len();
            out.push(Output::Thinking(thinking));
        }
        for text in [text, refusal] {
            if !text.is_empty() {
                self.held += text.len();
                self.text.push_str(&text);
                out.push(Output::Text(text));
            }
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, out);
        }
    }

    fn call(&mut self, piece: Call, out: &mut Vec<Output>) {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let name = function.name.clone().unwrap_or_default();
        let known = match piece.index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        // Some servers count no calls, or give each the index 0: an id or a name of its own begins another.
        let known = known.filter(|at| {
            let other_id = !id.is_empty() && self.given[*at] != id;
            let other_name = id.is_empty() && piece.index.is_none() && !name.is_empty();
            !other_id && !other_name
        });
        let at = known.unwrap_or_else(|| {
            let own = self.ids.take(&id);
            out.push(Output::Call { id: own.clone(), name: name.clone() });
            self.given.push(id);
            self.calls.push(Begun { id: own, name, params: String::new() });
            self.calls.len() - 1
        });
        if let Some(index) = piece.index {
            self.by_index.insert(index, at);
        }
        let arguments = function.arguments();
        self.held += SMALL + arguments.len();
        self.calls[at].params.push_str(&arguments);
    }

    /// What goes back to this provider as it came.
    fn kept(&mut self) -> Option<Box<RawValue>> {
        let mut block = Map::new();
        if !self.reasoning.is_empty() {
            block.insert("reasoning_content".into(), std::mem::take(&mut self.reasoning).into());
        }
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            let details = details.iter().map(|detail| serde_json::from_str(detail.get()).unwrap_or_default());
            block.insert("reasoning_details".into(), Value::Array(details.collect()));
        }
        let kept = serde_json::json!({"kind": KIND, "provider": self.from.provider, "blocks": [block]});
        if block_is_empty(&kept) { None } else { to_raw_value(&kept).ok() }
    }
}

fn block_is_empty(kept: &Value) -> bool {
    kept["blocks"][0].as_object().is_none_or(Map::is_empty)
}

impl Reader for Completion {
    fn event(&mut self, event: &Event, out: &mut Vec<Output>) -> Result<Step, CallError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(Step::End);
        }
        if data.is_empty() {
            return Ok(Step::Ping);
        }
        self.chunk(data.as_bytes(), out)?;
        Ok(Step::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Output>) -> Result<(), CallError> {
        match Fault::read(body) {
            Some(fault) => Err(self.from.failure(fault.class(None), None, Some(&fault.message))),
            None => self.chunk(body, out),
        }
    }

    /// Some servers close the stream instead of ending it; what has its reason to end is whole.
    fn may_end(&self) -> bool {
        self.finish.is_some()
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn held(&self) -> usize {
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

    fn reply(&mut self) -> Result<Reply, CallError> {
        let stop = match self.finish.take().as_deref() {
            _ if self.refused => Stop::Refused,
            Some("stop" | "eos" | "end_turn") | None => Stop::End,
            Some("tool_calls" | "function_call") => Stop::Calls,
            Some("length" | "max_tokens") => Stop::MaxTokens,
            Some("content_filter") => Stop::Refused,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let tool_calls = calls::finish(std::mem::take(&mut self.calls), stop == Stop::MaxTokens);
        // Some servers say `stop` and mean that they wait for results.
        let stop = if stop == Stop::End && !tool_calls.is_empty() { Stop::Calls } else { stop };
        let provider = self.kept();
        let usage = self.usage();
        let mut content = std::mem::take(&mut self.text);
        content.push_str(&self.thinking.end());
        Ok(Reply { content, tool_calls, provider, usage, cache_write_tokens: None, stop })
    }
}
