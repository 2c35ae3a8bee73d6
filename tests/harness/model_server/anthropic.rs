//! Encodes steps as events of Anthropic's Messages API.

use serde_json::{Value, json};

use super::connection::StreamEncoder;
use super::response::{Response, Step};

/// State of an encoded stream.
#[derive(Debug, Default)]
pub struct AnthropicEncoder {
    /// Index of the open block, or of the next one.
    index: u64,
    open_block: Option<&'static str>,
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

impl AnthropicEncoder {
    fn close_block(&mut self) -> String {
        if self.open_block.take().is_none() {
            return String::new();
        }
        self.index += 1;
        event("content_block_stop", json!({"index": self.index - 1}))
    }

    /// Encodes a delta of a block of `kind`, opening the block first if necessary.
    fn delta(&mut self, kind: &'static str, begin: Value, delta: Value) -> String {
        let mut said = String::new();
        if self.open_block != Some(kind) {
            said.push_str(&self.close_block());
            self.open_block = Some(kind);
            said.push_str(&event("content_block_start", json!({"index": self.index, "content_block": begin})));
        }
        said + &event("content_block_delta", json!({"index": self.index, "delta": delta}))
    }
}

impl StreamEncoder for AnthropicEncoder {
    fn encode_start(&mut self, model: &str, answer: &Response) -> String {
        let usage = answer.usage;
        let fresh = usage.input - usage.cache_read - usage.cache_write;
        let message = json!({
            "id": "msg_test", "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": fresh, "output_tokens": 1, "cache_read_input_tokens": usage.cache_read,
                      "cache_creation_input_tokens": usage.cache_write},
        });
        event("message_start", json!({"message": message}))
    }

    fn encode_step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => {
                self.delta("text", json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
            }
            Step::Thinking(text) => self.delta(
                "thinking",
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Step::Signature(signature) => {
                let delta = json!({"type": "signature_delta", "signature": signature});
                let said = self.delta("thinking", json!({"type": "thinking", "thinking": "", "signature": ""}), delta);
                said + &self.close_block()
            }
            Step::Call { id, name, params } => {
                let mut said = self.close_block();
                self.open_block = Some("tool_use");
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                said.push_str(&event("content_block_start", json!({"index": self.index, "content_block": block})));
                let half = (0..=params.len() / 2).rev().find(|at| params.is_char_boundary(*at)).unwrap_or(0);
                for part in ["", &params[..half], &params[half..]] {
                    let delta = json!({"type": "input_json_delta", "partial_json": part});
                    said.push_str(&event("content_block_delta", json!({"index": self.index, "delta": delta})));
                }
                said + &self.close_block()
            }
            Step::Ping => event("ping", json!({})),
            Step::Error(kind, message) => event("error", json!({"error": {"type": kind, "message": message}})),
            _ => String::new(),
        }
    }

    fn encode_end(&mut self, answer: &Response) -> String {
        let usual = if answer.has_calls() { "tool_use" } else { "end_turn" };
        let reason = answer.stop_reason.as_deref().unwrap_or(usual);
        let mut said = self.close_block();
        said.push_str(&event(
            "message_delta",
            json!({"delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": answer.usage.output}}),
        ));
        said + &event("message_stop", json!({}))
    }
}
