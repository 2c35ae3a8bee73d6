//! Says in a sentence what an event is about.

use chorus_proto::command_text::add_target;
use chorus_proto::{Event, EventType};
use serde_json::Value;

use crate::ui::units::{format_token_count, pluralize};

/// Returns what happened, in one line; for types that this release does not know, their data as JSON.
pub fn describe(event: &Event) -> String {
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
        EventType::ContextRewound => {
            let (verb, moved) = match count("restored") {
                0 => ("removed", count("removed")),
                restored => ("restored", restored),
            };
            format!("undo: {verb} {} ({} total)", pluralize(moved, "message"), count("messages"))
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
        EventType::ScheduleStarted => format!("schedule {} is due", text("name")),
        EventType::ScheduleFinished => match text("error") {
            "" => format!("schedule {} finished", text("name")),
            error => format!("schedule {} failed: {error}", text("name")),
        },
        EventType::Notice => add_target(&notice_text(text("text")), None, event.conversation.as_deref()),
        EventType::ConfigReloaded => match text("error") {
            "" => format!("the configuration was reloaded{}", changed_keys(data)),
            error => format!("the configuration was not reloaded: {error}"),
        },
        EventType::DaemonStopping => "the daemon is stopping".to_owned(),
        _ => data.to_string(),
    }
}

/// Names the keys that a reload changed, and those that apply after a restart.
fn changed_keys(data: &Value) -> String {
    let keys = |name: &str| {
        let keys = data.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        keys.collect::<Vec<_>>().join(", ")
    };
    match (keys("changed"), keys("restart")) {
        (changed, restart) if changed.is_empty() && restart.is_empty() => String::new(),
        (changed, restart) if restart.is_empty() => format!(": {changed}"),
        (changed, restart) if changed.is_empty() => format!("; after a restart: {restart}"),
        (changed, restart) => format!(": {changed}; after a restart: {restart}"),
    }
}

/// Returns a notice as it is read in a terminal: the idle notice, which names the command of Discord, names chorusctl's.
#[must_use]
pub fn notice_text(text: &str) -> String {
    let parts = text.strip_suffix(" to resume.").and_then(|text| text.rsplit_once("Use /context restore "));
    match parts.filter(|(_, id)| !id.contains(char::is_whitespace)) {
        Some((said, id)) => format!("{said}Use `chorusctl restore {id}` to resume."),
        None => text.to_owned(),
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
        let idle = "Session saved: It is done. Context cleared after 30 minutes of inactivity. Use /context restore 1f3a9c02 to resume.";
        let shown = "Session saved: It is done. Context cleared after 30 minutes of inactivity. Use `chorusctl restore 1f3a9c02` to resume.";
        assert_eq!(sentence("notice", json!({"text": idle})), shown);
        assert_eq!(sentence("of.the.future", json!({"a": 1})), "{\"a\":1}");
    }
}
