//! Texts of calls as JSON in the words of the conventions, with secrets replaced.

use chorus_engine::traces::{CallContent, TraceMessage, TracePart};
use chorus_proto::Role;
use chorus_redact::Redactor;
use serde_json::{Value, json};

/// Formats messages, with secrets replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageFormat<'a>(pub(crate) &'a Redactor);

impl MessageFormat<'_> {
    /// Returns the pieces of the system prompt; `None` if it is empty.
    pub(crate) fn system(self, content: &CallContent) -> Option<String> {
        let parts: Vec<Value> =
            content.system.iter().map(|piece| json!({"type": "text", "content": self.text(piece)})).collect();
        (!parts.is_empty()).then(|| Value::from(parts).to_string())
    }

    /// Returns what the model was sent. If older messages are missing, the first one says how many.
    pub(crate) fn input(self, content: &CallContent) -> String {
        let note = (content.left_out > 0).then(|| {
            let text = format!("[{} older messages are left out]", content.left_out);
            json!({"role": "system", "parts": [{"type": "text", "content": text}]})
        });
        let messages = content.input.iter().map(|message| self.message(message));
        note.into_iter().chain(messages).collect::<Value>().to_string()
    }

    /// Returns what the model replied; `None` if it is nothing.
    pub(crate) fn output(self, content: &CallContent) -> Option<String> {
        let mut message = self.message(content.output.as_ref()?);
        message["finish_reason"] = content.finish_reason.as_str().into();
        Some(json!([message]).to_string())
    }

    /// Returns a text that may have been cut.
    pub(crate) fn text(self, text: &str) -> String {
        self.0.redact_message(text)
    }

    /// Returns parameters of a tool: JSON, or a text if they were cut.
    pub(crate) fn arguments(self, arguments: &str) -> Value {
        match serde_json::from_str(&self.0.redact_json(arguments).0) {
            Ok(value) if !arguments.ends_with('…') => value,
            _ => self.text(arguments).into(),
        }
    }

    fn message(self, message: &TraceMessage) -> Value {
        let role = match message.role {
            Role::ToolResult => "tool",
            role => role.as_str(),
        };
        let parts: Vec<Value> = message.parts.iter().map(|part| self.part(part)).collect();
        json!({"role": role, "parts": parts})
    }

    fn part(self, part: &TracePart) -> Value {
        match part {
            TracePart::Text(text) => json!({"type": "text", "content": self.text(text)}),
            TracePart::Call { id, name, arguments } => {
                json!({"type": "tool_call", "id": id, "name": name, "arguments": self.arguments(arguments)})
            }
            TracePart::Result { id, text } => {
                json!({"type": "tool_call_response", "id": id, "response": self.text(text)})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_wherever_they_are() {
        let key = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let redactor = Redactor::new(|| [0; 32]);
        let format = MessageFormat(&redactor);
        let cut = format!("the key is {}…", &key[..30]);
        let content = CallContent {
            system: vec![format!("use {key}")],
            input: vec![
                TraceMessage { role: Role::User, parts: vec![TracePart::Text(cut)] },
                TraceMessage {
                    role: Role::ToolResult,
                    parts: vec![TracePart::Result { id: "1".into(), text: key.into() }],
                },
            ],
            left_out: 2,
            output: Some(TraceMessage {
                role: Role::Assistant,
                parts: vec![TracePart::Call {
                    id: "2".into(),
                    name: "bash".into(),
                    arguments: json!({"command": format!("curl -H {key}"), "n": 1}).to_string(),
                }],
            }),
            finish_reason: "tool_call".into(),
            error: None,
        };
        let texts = [format.system(&content).unwrap(), format.input(&content), format.output(&content).unwrap()];
        for text in &texts {
            assert!(text.contains("[redacted:") && !text.contains(&key[4..20]), "{text}");
        }
        let input: Value = serde_json::from_str(&texts[1]).unwrap();
        assert_eq!((&input[0]["role"], &input[2]["role"]), (&json!("system"), &json!("tool")));
        let output: Value = serde_json::from_str(&texts[2]).unwrap();
        assert_eq!(
            (&output[0]["finish_reason"], &output[0]["parts"][0]["arguments"]["n"]),
            (&json!("tool_call"), &json!(1))
        );
    }
}
