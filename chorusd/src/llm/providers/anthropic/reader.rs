//! The events of an answer: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

use std::collections::BTreeMap;

use chorus_proto::Usage;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::super::super::error::CallError;
use super::super::super::output::Output;
use super::super::super::reply::{Reply, Stop};
use super::super::super::sse::Event;
use super::super::calls::{self, Begun, Ids};
use super::super::refusal::Fault;
use super::super::{Named, Reader, SMALL, Step};
use super::KIND;

/// An answer as far as it has come.
pub struct Messages {
    from: Named,
    text: String,
    blocks: BTreeMap<u64, Block>,
    ids: Ids,
    usage: Counts,
    stop: Option<String>,
    ended: bool,
    held: usize,
}

enum Block {
    Text,
    /// Thinking, put together again as it would have come in one piece.
    Kept(Map<String, Value>),
    Call(Begun),
    Other,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
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
        usage: Counts,
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
    usage: Counts,
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

/// An answer in one piece.
#[derive(Deserialize)]
struct Whole {
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Counts,
}

/// What is kept digit for digit of a block.
#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

impl Messages {
    pub fn new(from: Named) -> Self {
        Self {
            from,
            text: String::new(),
            blocks: BTreeMap::new(),
            ids: Ids::default(),
            usage: Counts::default(),
            stop: None,
            ended: false,
            held: 0,
        }
    }

    /// A block begins. `params` is given where the whole answer comes in one piece.
    fn begin(&mut self, index: u64, block: Value, params: Option<&RawValue>, out: &mut Vec<Output>) {
        let Value::Object(mut block) = block else { return };
        self.held += SMALL;
        let mut take = |key: &str| match block.get_mut(key) {
            Some(Value::String(text)) => std::mem::take(text),
            _ => String::new(),
        };
        let begun = match &*take("type") {
            "text" => {
                let text = take("text");
                self.separate(out);
                self.say(text, out);
                Block::Text
            }
            "tool_use" => {
                let (id, name) = (self.ids.take(&take("id")), take("name"));
                out.push(Output::Call { id: id.clone(), name: name.clone() });
                // The `input` of a stream's block is empty: it comes in pieces.
                Block::Call(Begun {
                    id,
                    name,
                    params: params.map(|params| params.get().to_owned()).unwrap_or_default(),
                })
            }
            kind @ ("thinking" | "redacted_thinking") => {
                block.insert("type".into(), kind.into());
                if let Some(thinking) = block.get("thinking").and_then(Value::as_str).filter(|text| !text.is_empty()) {
                    out.push(Output::Thinking(thinking.to_owned()));
                }
                Block::Kept(block)
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, begun);
    }

    /// A text after a call is a new paragraph of the message.
    fn separate(&mut self, out: &mut Vec<Output>) {
        let after_text = self.blocks.values().next_back().is_none_or(|last| matches!(last, Block::Text));
        if !after_text && !self.text.is_empty() {
            self.say("\n\n".to_owned(), out);
        }
    }

    fn say(&mut self, text: String, out: &mut Vec<Output>) {
        if !text.is_empty() {
            self.held += text.len();
            self.text.push_str(&text);
            out.push(Output::Text(text));
        }
    }

    fn go_on(&mut self, index: u64, delta: Delta, out: &mut Vec<Output>) {
        let append = |block: &mut Map<String, Value>, key: &str, more: &str| match block.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => _ = block.insert(key.to_owned(), more.into()),
        };
        match (delta, self.blocks.get_mut(&index)) {
            (Delta::Text { text }, _) => self.say(text, out),
            (Delta::Thinking { thinking }, Some(Block::Kept(block))) => {
                self.held += thinking.len();
                append(block, "thinking", &thinking);
                out.push(Output::Thinking(thinking));
            }
            (Delta::Signature { signature }, Some(Block::Kept(block))) => {
                self.held += signature.len();
                append(block, "signature", &signature);
            }
            (Delta::Params { partial_json }, Some(Block::Call(call))) => {
                self.held += partial_json.len();
                call.params.push_str(&partial_json);
            }
            _ => {}
        }
    }

    /// Later numbers replace earlier ones: they are totals.
    fn count(&mut self, counts: Counts) {
        let mine = &mut self.usage;
        mine.input_tokens = counts.input_tokens.or(mine.input_tokens);
        mine.output_tokens = counts.output_tokens.or(mine.output_tokens);
        mine.cache_creation_input_tokens = counts.cache_creation_input_tokens.or(mine.cache_creation_input_tokens);
        mine.cache_read_input_tokens = counts.cache_read_input_tokens.or(mine.cache_read_input_tokens);
    }
}

impl Reader for Messages {
    fn event(&mut self, event: &Event, out: &mut Vec<Output>) -> Result<Step, CallError> {
        let said: Said = serde_json::from_str(&event.data).map_err(|e| self.from.malformed(&e))?;
        match said {
            Said::MessageStart { message } => self.count(message.usage),
            Said::ContentBlockStart { index, content_block } => self.begin(index, content_block, None, out),
            Said::ContentBlockDelta { index, delta } => self.go_on(index, delta, out),
            Said::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.count(usage);
            }
            Said::MessageStop => {
                self.ended = true;
                return Ok(Step::End);
            }
            Said::Ping => return Ok(Step::Ping),
            Said::Error { error } => {
                let fault = Fault::of(error);
                return Err(self.from.failure(fault.class(None), None, Some(&fault.message)));
            }
            Said::Other => {}
        }
        Ok(Step::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Output>) -> Result<(), CallError> {
        if let Some(fault) = Fault::read(body) {
            return Err(self.from.failure(fault.class(None), None, Some(&fault.message)));
        }
        let whole: Whole = serde_json::from_slice(body).map_err(|e| self.from.malformed(&e))?;
        for (index, block) in whole.content.into_iter().enumerate() {
            let read = |e: serde_json::Error| self.from.malformed(&e);
            let value = serde_json::from_str(block.get()).map_err(read)?;
            let input: Input = serde_json::from_str(block.get()).map_err(read)?;
            self.begin(index as u64, value, input.input.as_deref(), out);
        }
        self.stop = whole.stop_reason;
        self.count(whole.usage);
        self.ended = true;
        Ok(())
    }

    fn may_end(&self) -> bool {
        self.ended
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn held(&self) -> usize {
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

    fn reply(&mut self) -> Result<Reply, CallError> {
        let stop = match self.stop.take().as_deref() {
            Some("end_turn" | "stop_sequence") | None => Stop::End,
            Some("tool_use") => Stop::Calls,
            Some("max_tokens" | "model_context_window_exceeded") => Stop::MaxTokens,
            Some("refusal") => Stop::Refused,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let (mut begun, mut kept) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block {
                Block::Call(call) => begun.push(call),
                Block::Kept(block) => kept.push(block),
                Block::Text | Block::Other => {}
            }
        }
        let tool_calls = calls::finish(begun, stop == Stop::MaxTokens);
        let provider: Option<Box<RawValue>> = if kept.is_empty() {
            None
        } else {
            to_raw_value(&json!({"kind": KIND, "provider": self.from.provider, "blocks": kept})).ok()
        };
        let usage = self.usage();
        let stop = if stop == Stop::End && !tool_calls.is_empty() { Stop::Calls } else { stop };
        let content = std::mem::take(&mut self.text);
        let cache_write_tokens = self.usage.cache_creation_input_tokens;
        Ok(Reply { content, tool_calls, provider, usage, cache_write_tokens, stop })
    }
}
