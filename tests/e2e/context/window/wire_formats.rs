//! What the two wire formats refuse, by their public references: Anthropic's Messages API ("tool use": each `tool_use`
//! has its `tool_result` at the beginning of the next user message, ids are unique, the first message is a user's, no
//! empty text) and OpenAI's chat completions (each of `tool_calls` is answered by one `tool` message that follows).

use std::collections::BTreeSet;

use chorus_proto::{Message, Role};

type Verdict = Result<(), String>;

fn require(holds: bool, what: &str, index: usize) -> Verdict {
    if holds { Ok(()) } else { Err(format!("message {index}: {what}")) }
}

/// Ids of the calls of a message; each one once.
fn calls(message: &Message, index: usize) -> Result<BTreeSet<&str>, String> {
    let ids: BTreeSet<_> = message.tool_calls.iter().map(|call| &*call.id).collect();
    require(ids.len() == message.tool_calls.len(), "an id comes twice", index)?;
    require(!ids.contains(""), "an id is empty", index)?;
    require(message.tool_calls.iter().all(|call| !call.name.is_empty()), "a tool has no name", index)?;
    Ok(ids)
}

/// Messages of one side in a row are one message there: its blocks.
pub fn anthropic(messages: &[Message]) -> Verdict {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        match message.role {
            Role::System => return Err(format!("message {index}: only the prompt is the system")),
            Role::User => {
                require(open.is_empty(), "text before a result", index)?;
                let says = !message.content.trim().is_empty() || !message.attachments.is_empty();
                require(says, "an empty message", index)?;
            }
            Role::Assistant => {
                require(index > 0, "the assistant begins", index)?;
                require(open.is_empty(), "a call without result", index)?;
                open = calls(message, index)?;
                require(!open.is_empty() || !message.content.trim().is_empty(), "an empty message", index)?;
            }
            Role::ToolResult => {
                let answered = message.tool_call_id.as_deref().is_some_and(|id| open.remove(id));
                require(answered, "a result without call", index)?;
            }
        }
    }
    require(open.is_empty(), "a call without result at the end", messages.len())
}

/// `tool` messages stand directly behind the message with their calls, one for each.
pub fn openai(messages: &[Message]) -> Verdict {
    let mut index = 0;
    while index < messages.len() {
        let message = &messages[index];
        require(message.role != Role::ToolResult, "a tool message that follows no calls", index)?;
        require(message.role != Role::System, "only the prompt is the system", index)?;
        require(message.role == Role::Assistant || message.tool_calls.is_empty(), "calls of a user", index)?;
        let asked = calls(message, index)?;
        let results = messages[index + 1..].iter().take_while(|next| next.role == Role::ToolResult);
        let given: Vec<_> = results.map(|result| result.tool_call_id.as_deref().unwrap_or_default()).collect();
        require(given.len() == asked.len() && given.iter().all(|id| asked.contains(id)), "answers do not fit", index)?;
        require(given.iter().collect::<BTreeSet<_>>().len() == given.len(), "a call is answered twice", index)?;
        index += 1 + given.len();
    }
    Ok(())
}
