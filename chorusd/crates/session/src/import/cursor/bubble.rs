//! Parses a message: a question, or a piece of an answer, which is a text, a thought, or a tool call with its result.

use chorus_proto::{Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{json_string, minify_value, output_text, parse_timestamp};
use crate::import::raw_object::RawObject;
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry};

const USER: u64 = 1;
const ASSISTANT: u64 = 2;

/// Parses the messages of a conversation in order.
#[derive(Debug, Default)]
pub(super) struct BubbleReader {
    /// Thoughts, which are kept with the next piece of the answer.
    thoughts: Vec<(String, Box<RawValue>)>,
}

impl BubbleReader {
    /// Parses a message. Returns `None` for a thought, or an empty message, and the reason if it is not a message.
    pub(super) fn parse(
        &mut self,
        fields: &RawObject<'_>,
        about: &mut ImportedMetadata,
    ) -> Result<Option<TurnEntry>, String> {
        let role = match fields.get_u64("type") {
            Some(USER) => Role::User,
            Some(ASSISTANT) => Role::Assistant,
            _ => return Err("a message that is neither of the user nor of the assistant".into()),
        };
        let mut entry = TurnEntry::new(PROGRAM, role);
        entry.id = fields.get_filled("bubbleId");
        // Old versions have no times.
        entry.at = fields.get("createdAt").and_then(parse_timestamp).or(about.started_at);
        entry.texts.extend(fields.get_filled("text"));
        let thinking =
            fields.get("thinking").or_else(|| fields.get("allThinkingBlocks").filter(|list| list.get() != "[]"));
        self.thoughts.extend(thinking.map(|thinking| ("thinking".to_owned(), minify_value(thinking))));
        if let Some(tool) = fields.get("toolFormerData").and_then(RawObject::from_value) {
            add_call(&tool, &mut entry);
        }
        let model = fields.get("modelInfo").and_then(RawObject::from_value);
        entry.model = model.and_then(|model| model.get_filled("modelName")).filter(|model| model != "default");
        if role == Role::Assistant {
            about.model = entry.model.clone().or(about.model.take());
            entry.usage = fields.get("tokenCount").and_then(RawObject::from_value).map(|count| parse_usage(&count));
        }
        if entry.texts.is_empty() && entry.calls.is_empty() {
            return Ok(None);
        }
        if role == Role::Assistant {
            entry.extra.append(&mut self.thoughts);
        }
        Ok(Some(entry))
    }

    /// Returns the thoughts that no answer follows.
    pub(super) fn finish(&mut self, about: &ImportedMetadata) -> Option<TurnEntry> {
        let mut rest = TurnEntry::new(PROGRAM, Role::Assistant);
        rest.at = about.started_at;
        rest.extra = std::mem::take(&mut self.thoughts);
        (!rest.extra.is_empty()).then_some(rest)
    }
}

fn add_call(tool: &RawObject<'_>, entry: &mut TurnEntry) {
    let id = tool.get_filled("toolCallId").or_else(|| entry.id.clone()).unwrap_or_default();
    let name = tool.get_filled("name").unwrap_or_else(|| "tool".into());
    let parsed = |text: String| RawValue::from_string(text).ok();
    let params = ["params", "rawArgs"].into_iter().find_map(|name| tool.get_filled(name).and_then(parsed));
    let params = params.map_or_else(|| json_string(""), |params| minify_value(&params));
    entry.calls.push(ToolCall { id: id.clone(), name: name.clone(), params });
    let status = tool.get_text("status").unwrap_or_default();
    let result = tool.get_filled("result");
    if result.is_none() && !matches!(status.as_ref(), "completed" | "error" | "cancelled") {
        return;
    }
    let is_failure = !matches!(status.as_ref(), "completed" | "");
    let value = result.clone().and_then(parsed);
    let exit: Option<i64> =
        value.as_deref().and_then(RawObject::from_value).and_then(|value| value.get_parsed("exitCode"));
    let text = value.map_or_else(|| result.unwrap_or_default(), |value| output_text(&value));
    let is_error = is_failure || exit.is_some_and(|exit| exit != 0);
    entry.results.push(CallResult { call: id, name: Some(name), text, is_error, ..CallResult::default() });
}

/// Parses token counts, which are zero in many versions.
fn parse_usage(count: &RawObject<'_>) -> Usage {
    let positive = |name: &str| count.get_u64(name).filter(|count| *count > 0);
    Usage { input_tokens: positive("inputTokens"), output_tokens: positive("outputTokens"), ..Usage::default() }
}
