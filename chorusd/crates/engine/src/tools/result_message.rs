//! Builds the result message of a tool call and truncates long results.

use chorus_base::new_id;
use chorus_proto::{Message, NewMessage, Role, ToolCall};
use chorus_session::stored_message::StoredMessage;
use jiff::Timestamp;

/// Limit on the bytes of a result; half of them are kept of its beginning, half of its end.
const MAX_RESULT_LEN: usize = 256 << 10;

/// Returns the message with the result of a call.
pub fn tool_result_message(
    call: &ToolCall,
    text: String,
    is_error: bool,
    now: Timestamp,
) -> serde_json::Result<StoredMessage> {
    let message: Message = NewMessage {
        tool_call_id: Some(call.id.clone()),
        name: Some(call.name.clone()),
        is_error,
        ..NewMessage::text(Role::ToolResult, truncate_middle(text))
    }
    .complete(|| new_id().to_string(), now);
    StoredMessage::new(&message)
}

/// Replaces NUL, and keeps only the beginning and end of a text that is too long.
fn truncate_middle(text: String) -> String {
    let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    if text.len() <= MAX_RESULT_LEN {
        return text;
    }
    let (mut start, mut end) = (MAX_RESULT_LEN / 2, text.len() - MAX_RESULT_LEN / 2);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    format!("{}\n[{} bytes omitted]\n{}", &text[..start], end - start, &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_keep_both_ends() {
        let text = truncate_middle(format!("a{}z", "é\0".repeat(MAX_RESULT_LEN)));
        assert!(
            text.len() < MAX_RESULT_LEN + 64 && text.starts_with('a') && text.ends_with('z') && !text.contains('\0')
        );
        assert!(text.contains("bytes omitted"));
        assert_eq!(truncate_middle("short".into()), "short");
    }
}
