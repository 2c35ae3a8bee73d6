//! Parses what the person saw (ui_messages.json). It has times and usage for the transcript, and stands for it if there is
//! none.

use chorus_proto::{Role, ToolCall};
use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::import::json_values::{json_string, minify_value};
use crate::import::raw_object::RawObject;
use crate::import::turn_entry::TurnEntry;

/// Returns whether an object is an entry of the file.
pub(in super::super) fn is_ui_message(fields: &RawObject<'_>) -> bool {
    fields.has("ts") && fields.get_text("type").is_some_and(|kind| matches!(kind.as_ref(), "say" | "ask"))
}

/// Returns the kind of an entry: what it says or asks.
fn kind_of(fields: &RawObject<'_>) -> String {
    fields.get_filled("say").or_else(|| fields.get_filled("ask")).unwrap_or_default()
}

/// Returns the description of a request to the model, which is JSON in a text.
pub(super) fn parse_request(fields: &RawObject<'_>) -> Option<Box<RawValue>> {
    if kind_of(fields) != "api_req_started" {
        return None;
    }
    RawValue::from_string(fields.get_text("text")?.into_owned()).ok()
}

/// An entry that is part of the conversation.
#[derive(Debug)]
pub(super) struct ShownMessage {
    kind: String,
    text: String,
    at: Timestamp,
}

impl ShownMessage {
    /// Parses an entry. Returns `None` for one that is not part of the conversation, or not complete.
    pub(super) fn parse(fields: &RawObject<'_>, at: Timestamp) -> Option<Self> {
        let kind = kind_of(fields);
        let is_part = ["text", "user_feedback", "completion_result", "tool", "command", "command_output"];
        let text = fields.get_filled("text")?;
        (is_part.contains(&kind.as_str()) && !fields.is_true("partial")).then_some(Self { kind, text, at })
    }

    /// Converts to an entry. The first text is the task, which the person wrote.
    pub(super) fn into_entry(self, program: &'static str, is_first: bool) -> TurnEntry {
        let by_user = is_first || self.kind == "user_feedback";
        let mut entry = TurnEntry::new(program, if by_user { Role::User } else { Role::Assistant });
        entry.at = Some(self.at);
        let call =
            |name: &str, params| ToolCall { id: self.at.as_millisecond().to_string(), name: name.into(), params };
        match self.kind.as_str() {
            "tool" => {
                let params = RawValue::from_string(self.text.clone()).ok();
                let name = params.as_deref().and_then(RawObject::from_value).and_then(|tool| tool.get_filled("tool"));
                let params = params.map_or_else(|| json_string(&self.text), |params| minify_value(&params));
                entry.calls.push(call(name.as_deref().unwrap_or("tool"), params));
            }
            "command" => {
                let command = json_string(&self.text);
                let params = RawValue::from_string(format!("{{\"command\":{}}}", command.get())).unwrap_or(command);
                entry.calls.push(call("execute_command", params));
            }
            "command_output" => {
                entry.role = Role::User;
                entry.by_program = true;
                entry.texts.push(self.text);
            }
            _ => entry.texts.push(self.text),
        }
        entry
    }
}
