//! Conversations as they come to be: said, called, cut off, imported, rewound and restored.

use chorus_agent_core::context::complete_calls_prefix;
use chorus_agent_core::window::{WindowBudget, build_window};
use chorus_proto::{NewMessage, Role, ToolCall};
use chorus_session::stored_message::StoredMessage;
use chorus_tests::rng::Rng;
use jiff::Timestamp;
use serde_json::value::RawValue;

pub fn message(role: Role, text: &str) -> NewMessage {
    NewMessage::text(role, text)
}

pub fn call(ids: &[&str]) -> NewMessage {
    let params = RawValue::from_string("{\"path\":\"a\"}".into()).expect("JSON");
    let call = |id: &&str| ToolCall { id: (*id).to_owned(), name: "view".into(), params: params.clone() };
    NewMessage { tool_calls: ids.iter().map(call).collect(), ..message(Role::Assistant, "") }
}

pub fn result(id: &str, text: &str) -> NewMessage {
    let (tool_call_id, name) = (Some(id.to_owned()), Some("view".to_owned()));
    NewMessage { tool_call_id, name, ..message(Role::ToolResult, text) }
}

pub fn stored(message: NewMessage) -> StoredMessage {
    let at: Timestamp = "2026-02-12T10:00:00Z".parse().expect("a time");
    StoredMessage::new(&message.complete(|| "m".to_owned(), at)).expect("serialises")
}

/// Few ids, so that some come again.
fn id(rng: &mut Rng) -> &'static str {
    ["c1", "c2", "c1-2", "toolu_9", ""][rng.below(5) as usize]
}

/// One message of an import that knows no rules.
fn anything(rng: &mut Rng) -> NewMessage {
    let text = ["", " ", "yes", "a longer sentence about the import", "## user\n> quoted"][rng.below(5) as usize];
    match rng.below(6) {
        0 => message(Role::System, text),
        1 => message(Role::User, text),
        2 => message(Role::Assistant, text),
        3 => result(id(rng), text),
        4 => NewMessage { tool_call_id: None, ..result("c1", text) },
        _ => {
            let ids: Vec<_> = (0..1 + rng.below(3)).map(|_| id(rng)).collect();
            NewMessage { content: text.to_owned(), ..call(&ids) }
        }
    }
}

/// A turn as Chorus runs it; a cancel or a crash ends some in the middle of their calls.
fn turn(rng: &mut Rng) -> Vec<NewMessage> {
    let mut turn = vec![message(Role::User, "do it")];
    for _ in 0..rng.below(3) {
        let ids: Vec<String> = (0..1 + rng.below(3)).map(|n| format!("c{n}")).collect();
        turn.push(call(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
        turn.extend(ids.iter().map(|id| result(id, "a result")));
    }
    turn.push(message(Role::Assistant, "done"));
    if rng.below(3) == 0 {
        turn.truncate(1 + rng.below(turn.len() as u64) as usize);
    }
    turn
}

/// A record after some of what can become of one.
pub fn history(rng: &mut Rng) -> Vec<StoredMessage> {
    let mut record: Vec<StoredMessage> = Vec::new();
    for _ in 0..1 + rng.below(6) {
        match rng.below(8) {
            0..=3 => record.extend(turn(rng).into_iter().map(stored)),
            4 => record.push(stored(anything(rng))),
            // A crash, or a rewind: whatever came after is gone.
            5 => record.truncate(rng.below(record.len() as u64 + 1) as usize),
            // A restore of the first N messages.
            6 => record.truncate(complete_calls_prefix(&record, rng.below(record.len() as u64 + 1) as usize)),
            // What was shown goes on as a conversation of its own.
            _ => {
                let shown = build_window(&record, WindowBudget { messages: 6, tokens: 60 }).messages;
                record = shown.iter().map(|message| StoredMessage::new(message).expect("serialises")).collect();
            }
        }
    }
    record
}
