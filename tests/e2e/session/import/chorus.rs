//! Chorus's own session files.

use std::fs;

use chorus_proto::methods::import::{ImportFormat, ImportOutcome};
use chorus_proto::{NewMessage, Role, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;
use serde_json::{Value, json};

use crate::home;

#[test]
fn a_session_file_of_another_home_comes_in_whole() {
    let (there, here) = (home(), home());
    let (far, near) = (Daemon::start(&there), Daemon::start(&here));
    let mut client = far.client();
    client.init("theirs");
    let call =
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "t", "params": {"n": 1}}]});
    let call = serde_json::from_value(call).expect("a message");
    client.append_all("theirs", vec![NewMessage::text(Role::User, "hello"), call]);
    let saved = client.save("theirs", "Brought along");
    let text = fs::read_to_string(&saved.file_path).expect("the file");

    let mut client = near.client();
    client.init("ours");
    let result = import_transcript(&mut client, "ours", ImportFormat::Auto, &text, 100).expect("imported");
    let (session, messages) = client.get_session("ours", "latest");
    assert_eq!(result.sessions, std::slice::from_ref(&session));
    assert_eq!(session.header.id, saved.header.id, "free here, so it is kept");
    assert_eq!((session.header.trigger, session.header.message_count), (Trigger::Import, 2));
    assert_eq!(session.header.description.as_deref(), Some("Brought along"));
    let (_, original) = far.client().get_session("theirs", "latest");
    let plain = |messages: &[chorus_proto::Message]| -> Vec<(String, Role, String, usize)> {
        let parts = messages.iter().map(|m| (m.id.clone(), m.role, m.content.clone(), m.tool_calls.len()));
        parts.collect()
    };
    assert_eq!(plain(&messages), plain(&original));

    let again = import_transcript(&mut client, "ours", ImportFormat::Chorus, &text, 100).expect("imported again");
    assert_eq!(again.conversations[0].outcome, ImportOutcome::UpToDate);
    assert_eq!(client.history("ours").len(), 1);
    client.init("others");
    for outcome in [ImportOutcome::New, ImportOutcome::UpToDate] {
        let copy = import_transcript(&mut client, "others", ImportFormat::Chorus, &text, 100).expect("imported");
        assert_ne!(copy.sessions[0].header.id, saved.header.id, "a session gets a new id when its own is taken");
        assert_eq!(copy.conversations[0].outcome, outcome);
    }
}

#[test]
fn schema_1_is_read() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let id = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604";
    let old: Value = json!({
        "schema": 1, "session_id": id, "timestamp": "2025-03-04T05:06:07Z", "agent_name": "old", "description": "From before",
        "messages": [{"id": "m1", "role": "user", "content": "hello", "timestamp": "2025-03-04T05:00:00Z"}],
    });
    import_transcript(&mut client, "a", ImportFormat::Auto, &old.to_string(), 50).expect("imported");
    let (session, messages) = client.get_session("a", "latest");
    assert_eq!(session.header.id.to_string(), id);
    assert_eq!((messages.len(), &*messages[0].content), (1, "hello"));
    assert_eq!(messages[0].id, "m1");
}

#[test]
fn the_messages_of_a_session_come_back_from_jsonl_byte_for_byte() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    let full = json!({"role": "assistant", "content": "caf\u{e9}", "tool_calls": [{"id": "c", "name": "t", "params": {"n": 1}}],
        "usage": {"input_tokens": 5, "cost_usd": 0.5}, "generated": true, "provider": {"x": 1},
        "source": {"kind": "cli"}, "attachments": [{"name": "a.png", "data": "aGk="}]});
    let full = serde_json::from_value(full).expect("a message");
    client.append_all("a", vec![NewMessage::text(Role::User, "hello"), full]);
    client.save("a", "Lines");
    let lines = chorusctl(&home, ["--agent", "a", "session", "export", "latest", "--as", "jsonl"]).expect_success();
    for from in [ImportFormat::Auto, ImportFormat::Chorus] {
        let result = import_transcript(&mut client, "b", from, &lines, 50).expect("imported");
        assert_eq!((result.sessions.len(), result.skipped_total), (1, 0));
        let again = chorusctl(&home, ["--agent", "b", "session", "export", "latest", "--as", "jsonl"]).expect_success();
        assert_eq!(again, lines);
    }
}
