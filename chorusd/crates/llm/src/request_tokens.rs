//! Estimated tokens of a request and of its tools; see [`chorus_session::token_estimate`].

use std::sync::Arc;

use chorus_session::token_estimate::{MessageSize, tokens_of_piece, tokens_of_text};

use crate::request::{ModelRequest, ToolSpec};

/// Overhead of a tool besides its name, description and parameters.
const TOOL_OVERHEAD: u64 = 12;

/// Returns the tokens of a whole request.
#[must_use]
pub fn tokens_of_request(request: &ModelRequest) -> u64 {
    let system = request.system.iter().map(|text| tokens_of_piece(text));
    let messages = request.messages.iter().map(|message| MessageSize::of_message(message).tokens());
    system.chain(messages).sum::<u64>() + tokens_of_tools(&request.tools)
}

/// Returns the tokens of the tools of a request.
#[must_use]
pub fn tokens_of_tools(tools: &[Arc<ToolSpec>]) -> u64 {
    tools.iter().map(|spec| tokens_of_tool(spec)).sum()
}

/// Returns the tokens of one tool.
#[must_use]
pub fn tokens_of_tool(tool: &ToolSpec) -> u64 {
    TOOL_OVERHEAD
        + [&tool.name, &tool.description, &tool.parameters.to_string()]
            .map(|text| tokens_of_text(text))
            .iter()
            .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use chorus_proto::{Message, NewMessage};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_the_sum_of_its_parts() {
        let tool =
            ToolSpec { name: "view".into(), description: "Looks.".into(), parameters: json!({"type": "object"}) };
        let tool = Arc::new(tool);
        let hello = NewMessage::text(chorus_proto::Role::User, "Hello there.")
            .complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH);
        let asked = |messages: Vec<Message>, system: Vec<String>, tools: Vec<Arc<ToolSpec>>| {
            tokens_of_request(&ModelRequest { messages, system, tools, ..ModelRequest::default() })
        };
        let one = asked(vec![hello.clone()], Vec::new(), Vec::new());
        assert_eq!(one, MessageSize::of_message(&hello).tokens());
        assert_eq!(asked(vec![hello.clone(), hello.clone()], Vec::new(), Vec::new()), 2 * one);
        let whole = asked(vec![hello], vec!["You are kind.".into()], vec![tool.clone()]);
        assert_eq!(whole, one + tokens_of_piece("You are kind.") + tokens_of_tools(&[tool]));
    }
}
