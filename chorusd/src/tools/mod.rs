//! Tools that a model may call. A failure is told to the model as a result, never a reason to end the turn.

mod list_models;

use chorus_proto::{Message, NewMessage, Role, ToolCall};
use jiff::Timestamp;
use uuid::Uuid;

use crate::llm::{Models, ToolSpec};
use crate::message::Stored;

/// Bytes of a result that are kept: half of them from its beginning, half from its end.
const KEPT: usize = 256 << 10;

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub text: String,
    pub is_error: bool,
}

impl Outcome {
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// The tools as a model is shown them.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    vec![list_models::spec()]
}

/// Runs a tool.
#[must_use]
pub fn run(call: &ToolCall, models: &Models) -> Outcome {
    if !call.params.get().trim_start().starts_with('{') {
        return Outcome::error(format!("the parameters of {} are no JSON object; call it again with one", call.name));
    }
    match call.name.as_str() {
        list_models::NAME => list_models::run(models),
        other => {
            let names: Vec<String> = specs().into_iter().map(|spec| spec.name).collect();
            Outcome::error(format!("there is no tool {other:?}; there are: {}", names.join(", ")))
        }
    }
}

/// The message that answers a call.
///
/// # Errors
/// Never: texts serialise.
pub fn result_of(call: &ToolCall, text: String, is_error: bool, now: Timestamp) -> serde_json::Result<Stored> {
    let message: Message = NewMessage {
        tool_call_id: Some(call.id.clone()),
        name: Some(call.name.clone()),
        is_error,
        ..NewMessage::text(Role::ToolResult, kept(text))
    }
    .complete(|| Uuid::now_v7().to_string(), now);
    Stored::new(&message)
}

/// Beginning and end of a text that is longer than what is kept, without NUL.
fn kept(text: String) -> String {
    let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    if text.len() <= KEPT {
        return text;
    }
    let (mut start, mut end) = (KEPT / 2, text.len() - KEPT / 2);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    format!("{}\n[{} bytes are left out]\n{}", &text[..start], end - start, &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_keep_both_ends() {
        let text = kept(format!("a{}z", "é\0".repeat(KEPT)));
        assert!(text.len() < KEPT + 64 && text.starts_with('a') && text.ends_with('z') && !text.contains('\0'));
        assert!(text.contains("bytes are left out"));
        assert_eq!(kept("short".into()), "short");
    }
}
