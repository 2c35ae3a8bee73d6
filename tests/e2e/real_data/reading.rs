//! What a conversation says, whoever reads it.

use chorus_proto::Message;
use serde_json::Value;

/// A tool call: id, name, arguments.
pub type Call = (String, String, Value);

/// A message without what Chorus adds to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub role: String,
    pub text: String,
    pub calls: Vec<Call>,
    pub answers: Option<String>,
}

/// What Chorus made of it.
pub fn of_chorus(messages: &[Message]) -> Vec<Said> {
    let said = |message: &Message| Said {
        role: message.role.as_str().to_owned(),
        text: message.content.clone(),
        calls: message
            .tool_calls
            .iter()
            .map(|call| {
                let params = serde_json::from_str(call.params.get()).expect("JSON");
                (call.id.clone(), call.name.clone(), params)
            })
            .collect(),
        answers: message.tool_call_id.clone(),
    };
    messages.iter().map(said).collect()
}
