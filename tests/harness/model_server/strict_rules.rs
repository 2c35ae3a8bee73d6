//! Rules for conversations that the two real APIs enforce according to their public references. The server enforces
//! them in strict mode.

use std::collections::BTreeSet;

use serde_json::Value;

use super::state::WireFormat;

/// Checks a request; returns the first violation as the error.
pub fn check_request(wire: WireFormat, body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    match wire {
        WireFormat::Anthropic => check_anthropic(messages),
        WireFormat::Openai => check_openai(messages),
    }
}

fn block_ids<'a>(blocks: &'a [Value], kind: &str, id: &str) -> Vec<&'a str> {
    blocks.iter().filter(|block| block["type"] == kind).map(|block| block[id].as_str().unwrap_or_default()).collect()
}

/// Roles alternate and the user begins; every `tool_use` has its result at the beginning of the next message; no text
/// is empty.
fn check_anthropic(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (number, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("messages.{number}: {what}"));
        if message["role"] != ["user", "assistant"][number % 2] {
            return wrong("roles must take turns, beginning with the user");
        }
        let Some(blocks) = message["content"].as_array().filter(|blocks| !blocks.is_empty()) else {
            return wrong("no content");
        };
        let is_empty =
            |block: &Value| block["type"] == "text" && block["text"].as_str().is_none_or(|t| t.trim().is_empty());
        if blocks.iter().any(is_empty) {
            return wrong("text content blocks must be non-empty");
        }
        let results = block_ids(blocks, "tool_result", "tool_use_id");
        let answered: BTreeSet<_> = results.iter().copied().collect();
        if answered != open || answered.len() != results.len() {
            return wrong("each tool_use must have its one tool_result in the next message");
        }
        if blocks.iter().skip(results.len()).any(|block| block["type"] == "tool_result") {
            return wrong("tool_result blocks come first");
        }
        if let Some(call) = blocks.iter().find(|block| block["type"] == "tool_use" && !block["input"].is_object()) {
            return wrong(&format!("tool_use.input: Input should be a valid dictionary: {}", call["input"]));
        }
        let calls = block_ids(blocks, "tool_use", "id");
        // vybestack/llxprt-code#964.
        if let Some(id) = calls.iter().find(|id| !is_valid_name(id)) {
            return wrong(&format!("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id}"));
        }
        open = calls.iter().copied().collect();
        if open.len() != calls.len() {
            return wrong("tool_use ids must be unique");
        }
    }
    if open.is_empty() { Ok(()) } else { Err("the last calls have no results".to_owned()) }
}

fn is_valid_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Servers parse the arguments as JSON, and some templates require an object: vllm-project/vllm#43995,
/// ggml-org/llama.cpp#25510.
fn check_arguments(function: &Value) -> Result<(), String> {
    let text = function["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) if function["name"].as_str().is_some_and(is_valid_name) => Ok(()),
        Ok(Value::Object(_)) => Err(format!("'function.name': string does not match pattern: {}", function["name"])),
        Ok(_) => Err(format!("Failed to parse tool call arguments as JSON: no object: {text}")),
        Err(e) => Err(format!("Failed to parse tool call arguments as JSON: {e}: {text}")),
    }
}

/// Every call in `tool_calls` is answered by one `tool` message directly after it; only the first message may have the
/// role `system`.
fn check_openai(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (number, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("messages.{number}: {what}"));
        match message["role"].as_str() {
            Some("tool") if open.remove(message["tool_call_id"].as_str().unwrap_or_default()) => continue,
            Some("tool") => return wrong("a tool message must follow the call that it answers"),
            Some("system") if number > 0 => return wrong("only the first message is the system's"),
            Some("system" | "user" | "assistant") => {}
            _ => return wrong("no such role"),
        }
        if !open.is_empty() {
            return wrong("tool_calls must be followed by tool messages");
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            check_arguments(&call["function"])?;
            // camel-ai/camel#2215.
            if call["id"].as_str().is_none_or(|id| id.len() > 40) {
                return wrong("tool_calls.id: string too long. Expected a string with maximum length 40");
            }
        }
        open = calls.iter().map(|call| call["id"].as_str().unwrap_or_default()).collect();
        if open.len() != calls.len() {
            return wrong("ids of calls must be unique");
        }
    }
    if open.is_empty() { Ok(()) } else { Err("the last calls have no results".to_owned()) }
}
