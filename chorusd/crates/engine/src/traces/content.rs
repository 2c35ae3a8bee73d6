//! The texts of a call, cut to a size that costs a turn nothing. They have not been redacted.

use chorus_llm::{CallError, ModelRequest, Reply};
use chorus_proto::{Message, Role, ToolCall};

use super::records::finish_reason;

/// Limit of the texts of a request, and of those of a reply, in bytes. The newest messages are kept.
const MAX_MESSAGE_BYTES: usize = 32 << 10;

/// Limit of the system prompt in bytes.
const MAX_SYSTEM_BYTES: usize = 8 << 10;

/// Limit of the parameters of a tool, and of its result, in bytes.
const MAX_TOOL_BYTES: usize = 16 << 10;

/// The texts of a model call. Those that were cut end with `…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallContent {
    pub system: Vec<String>,
    pub input: Vec<TraceMessage>,
    /// Messages that are missing before those of `input`.
    pub left_out: usize,
    /// `None` without a reply.
    pub output: Option<TraceMessage>,
    pub finish_reason: String,
    /// Why the call failed.
    pub error: Option<String>,
}

/// A message as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceMessage {
    pub role: Role,
    pub parts: Vec<TracePart>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracePart {
    Text(String),
    /// `arguments` is JSON, unless it was cut.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    Result {
        id: String,
        text: String,
    },
}

/// The texts of a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolContent {
    pub arguments: String,
    pub result: String,
}

impl ToolContent {
    pub(super) fn new(call: &ToolCall, result: &str) -> Self {
        Self { arguments: cut(call.params.get(), MAX_TOOL_BYTES), result: cut(result, MAX_TOOL_BYTES) }
    }
}

impl CallContent {
    pub(super) fn of_request(request: &ModelRequest) -> Self {
        let mut left = MAX_SYSTEM_BYTES;
        let system = request.system.iter().map(|piece| take(piece, &mut left)).collect();
        let (mut input, mut left) = (Vec::new(), MAX_MESSAGE_BYTES);
        for message in request.messages.iter().rev() {
            if left == 0 {
                break;
            }
            input.push(TraceMessage::of_message(message, &mut left));
        }
        input.reverse();
        let left_out = request.messages.len() - input.len();
        Self { system, input, left_out, ..Self::default() }
    }

    pub(super) fn set_outcome(&mut self, outcome: &Result<Reply, CallError>) {
        let mut left = MAX_MESSAGE_BYTES;
        match outcome {
            Ok(reply) => {
                let mut parts = text_part(&reply.content, &mut left);
                parts.extend(reply.tool_calls.iter().map(|call| call_part(call, &mut left)));
                self.output = Some(TraceMessage { role: Role::Assistant, parts });
                finish_reason(&reply.stop).clone_into(&mut self.finish_reason);
            }
            Err(error) => {
                let parts = text_part(&error.partial, &mut left);
                self.output = (!parts.is_empty()).then_some(TraceMessage { role: Role::Assistant, parts });
                "error".clone_into(&mut self.finish_reason);
                self.error = Some(cut(&error.message, MAX_SYSTEM_BYTES));
            }
        }
    }
}

impl TraceMessage {
    fn of_message(message: &Message, left: &mut usize) -> Self {
        let role = message.role;
        if let (Role::ToolResult, Some(id)) = (role, &message.tool_call_id) {
            let text = take(&message.content, left);
            return Self { role, parts: vec![TracePart::Result { id: id.clone(), text }] };
        }
        let mut parts = text_part(&message.content, left);
        parts.extend(message.tool_calls.iter().map(|call| call_part(call, left)));
        Self { role, parts }
    }
}

fn text_part(text: &str, left: &mut usize) -> Vec<TracePart> {
    if text.is_empty() { Vec::new() } else { vec![TracePart::Text(take(text, left))] }
}

fn call_part(call: &ToolCall, left: &mut usize) -> TracePart {
    TracePart::Call { id: call.id.clone(), name: call.name.clone(), arguments: take(call.params.get(), left) }
}

/// Returns as much of `text` as `left` allows, and subtracts it.
fn take(text: &str, left: &mut usize) -> String {
    let taken = cut(text, *left);
    *left = left.saturating_sub(taken.len());
    taken
}

/// Returns the first `limit` bytes of `text`, with `…` if that is not all of it.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use chorus_proto::NewMessage;
    use jiff::Timestamp;

    use super::*;

    fn message(role: Role, text: &str) -> Message {
        NewMessage::text(role, text).complete(String::new, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_newest_messages_of_a_long_request_are_kept() {
        let long = "é".repeat(MAX_MESSAGE_BYTES);
        let messages = vec![message(Role::User, "old"), message(Role::Assistant, &long), message(Role::User, "new")];
        let content = CallContent::of_request(&ModelRequest { messages, ..ModelRequest::default() });
        assert_eq!((content.left_out, content.input.len()), (1, 2));
        assert_eq!(content.input[1].parts, [TracePart::Text("new".into())]);
        let [TracePart::Text(text)] = &content.input[0].parts[..] else { panic!("{content:?}") };
        assert!(text.ends_with("é…") && text.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8(), "{}", text.len());
    }

    #[test]
    fn nothing_is_cut_that_fits() {
        assert_eq!((cut("abc", 3), cut("abc", 2), cut("é", 1)), ("abc".into(), "ab…".into(), "…".into()));
    }
}
