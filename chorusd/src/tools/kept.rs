//! The message that answers a call, and how much of a long result it keeps.

use chorus_proto::{Message, NewMessage, Role, ToolCall};
use jiff::Timestamp;

use crate::clock::new_id;
use crate::message::Stored;

/// Bytes of a result that are kept: half of them from its beginning, half from its end.
const KEPT: usize = 256 << 10;

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
    .complete(|| new_id().to_string(), now);
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
