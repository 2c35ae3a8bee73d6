//! Encodes steps as chunks of chat completions.

use serde_json::{Value, json};

use super::connection::StreamEncoder;
use super::response::{Response, Step};

/// State of an encoded stream.
#[derive(Debug, Default)]
pub struct OpenaiEncoder {
    model: String,
    calls: u64,
}

impl OpenaiEncoder {
    fn chunk(&self, choices: &Value, usage: &Value) -> String {
        let chunk = json!({
            "id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1, "model": self.model,
            "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    }

    fn delta(&self, delta: &Value) -> String {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
    }
}

impl StreamEncoder for OpenaiEncoder {
    fn encode_start(&mut self, model: &str, _: &Response) -> String {
        model.clone_into(&mut self.model);
        self.delta(&json!({"role": "assistant", "content": ""}))
    }

    fn encode_step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => self.delta(&json!({"content": text})),
            Step::Thinking(text) => self.delta(&json!({"reasoning_content": text})),
            Step::Call { id, name, params } => {
                let index = self.calls;
                self.calls += 1;
                let function = json!({"name": name, "arguments": ""});
                let begin = json!({"index": index, "id": id, "type": "function", "function": function});
                let half = (0..=params.len() / 2).rev().find(|at| params.is_char_boundary(*at)).unwrap_or(0);
                let mut said = self.delta(&json!({"tool_calls": [begin]}));
                for part in [&params[..half], &params[half..]] {
                    let piece = json!({"index": index, "function": {"arguments": part}});
                    said.push_str(&self.delta(&json!({"tool_calls": [piece]})));
                }
                said
            }
            Step::Ping => ": ping\n\n".to_owned(),
            Step::Error(kind, message) => {
                format!("data: {}\n\n", json!({"error": {"type": kind, "code": kind, "message": message}}))
            }
            _ => String::new(),
        }
    }

    fn encode_end(&mut self, answer: &Response) -> String {
        let usual = if answer.has_calls() { "tool_calls" } else { "stop" };
        let reason = answer.stop_reason.as_deref().unwrap_or(usual);
        let usage = answer.usage;
        let usage = json!({
            "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        });
        let last = self.chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &Value::Null);
        let counts = if answer.reports_usage { self.chunk(&json!([]), &usage) } else { String::new() };
        last + &counts + "data: [DONE]\n\n"
    }
}
