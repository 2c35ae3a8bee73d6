//! Says in a sentence what an event is about.

use chorus_proto::{Event, EventType};
use serde_json::Value;

use crate::ui::units::{format_token_count, pluralize};

/// Returns what happened, in one line; for types that this release does not know, their data as JSON.
pub(super) fn describe(event: &Event) -> String {
    let data = &event.data;
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let count = |key: &str| data.get(key).and_then(Value::as_u64).unwrap_or_default();
    match event.kind {
        EventType::AgentCreated => "agent created".to_owned(),
        EventType::AgentDestroyed => "agent deleted".to_owned(),
        EventType::MessageAppended => {
            format!("added {} ({} total)", pluralize(count("appended"), "message"), count("messages"))
        }
        EventType::ContextSaved => {
            format!("saved {} ({})", text("session_id"), pluralize(count("messages"), "message"))
        }
        EventType::SummaryReady => match text("summary") {
            "" => "no summary could be made".to_owned(),
            summary => format!("summary: {summary}"),
        },
        EventType::ContextCleared => format!("cleared {}", pluralize(count("discarded"), "message")),
        EventType::ContextRestored => {
            format!("loaded {} ({})", text("session_id"), pluralize(count("messages"), "message"))
        }
        EventType::ContextCompacted => {
            let messages = pluralize(count("left"), "message");
            let (before, after) = (count("tokens_before"), count("tokens_after"));
            format!("compacted {messages} ({} to {})", format_token_count(before), format_token_count(after))
        }
        EventType::ContextNoted => match text("fallback") {
            "" => "the model's notes of the compaction are in".to_owned(),
            reason => format!("used the built-in summarizer: {reason}"),
        },
        EventType::TurnStarted => "turn started".to_owned(),
        EventType::TurnDelta => ["text", "thinking", "note"].map(text).concat(),
        EventType::TurnFinished => {
            let usage = |key: &str| data.get("usage").and_then(|usage| usage.get(key)).and_then(Value::as_u64);
            match usage("input_tokens").zip(usage("output_tokens")) {
                Some((input, output)) => {
                    format!("turn finished ({} in, {output} out)", format_token_count(input))
                }
                None => "turn finished".to_owned(),
            }
        }
        EventType::TurnInterrupted => format!("turn ended without a reply: {}", text("reason")),
        EventType::ToolStarted => format!("calls {}", text("name")),
        EventType::ToolFinished => match text("error") {
            "" => format!("{} finished", text("name")),
            error => format!("{} failed: {error}", text("name")),
        },
        EventType::ApprovalAsked => format!("asks for approval {}: {}", text("id"), text("action")),
        EventType::ApprovalDecided => format!("approval {} {}: {}", text("id"), text("status"), text("action")),
        EventType::TaskStarted => format!("started {}: {}", text("id"), text("command")),
        EventType::TaskFinished => format!("{} ended ({}): {}", text("id"), text("status"), text("command")),
        EventType::Notice => text("text").to_owned(),
        EventType::DaemonStopping => "the daemon is stopping".to_owned(),
        _ => data.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sentence(kind: &str, data: Value) -> String {
        let event = json!({"seq": 1, "time": "2026-01-02T03:04:05Z", "type": kind, "agent": "a", "data": data});
        serde_json::from_value(event).map(|event| describe(&event)).unwrap_or_default()
    }

    #[test]
    fn events_are_sentences() {
        assert_eq!(sentence("message.appended", json!({"appended": 1, "messages": 7})), "added 1 message (7 total)");
        let saved =
            json!({"id": "x", "short_id": "y", "session_id": "2026-01-02_x", "trigger": "manual_save", "messages": 2});
        assert_eq!(sentence("context.saved", saved), "saved 2026-01-02_x (2 messages)");
        let failed = json!({"turn_id": "t", "id": "c", "name": "bash", "is_error": true, "error": "no such file"});
        assert_eq!(sentence("tool.finished", failed), "bash failed: no such file");
        assert_eq!(sentence("notice", json!({"text": "Something to know."})), "Something to know.");
        assert_eq!(sentence("of.the.future", json!({"a": 1})), "{\"a\":1}");
    }
}
