//! Claude Code transcripts: a tree of lines, followed to its newest leaf.

use chorus_proto::methods::import::{CommitResult, ImportFormat};
use chorus_proto::{Client, Message, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use serde_json::{Value, json};

use crate::home;

/// A line of a transcript: its number is its id and its minute.
fn line(n: u32, parent: Option<u32>, kind: &str, content: Value) -> Value {
    json!({
        "type": kind, "uuid": format!("u{n}"), "parentUuid": parent.map(|p| format!("u{p}")),
        "timestamp": format!("2025-06-14T10:{n:02}:00Z"), "isSidechain": false, "sessionId": "s", "version": "1.0.0",
        "message": {"role": kind, "content": content},
    })
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn taken(client: &mut Client, lines: &[Value]) -> CommitResult {
    client.init("a");
    import_transcript(client, "a", ImportFormat::Auto, &text(lines), 500).expect("imported")
}

fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.content).collect()
}

#[test]
fn the_newest_branch_is_the_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let lines = [
        line(0, None, "user", json!("first question")),
        line(1, Some(0), "assistant", json!([{"type": "text", "text": "an answer given up"}])),
        line(2, Some(1), "user", json!("a question given up")),
        line(3, Some(0), "assistant", json!([{"type": "text", "text": "the answer kept"}])),
        line(4, Some(3), "user", json!("second question")),
    ];
    let result = taken(&mut client, &lines);
    let latest = result.sessions.iter().find(|session| session.header.message_count == 3);
    let id = latest.expect("the branch of three").header.id.to_string();
    let (_, messages) = client.get_session("a", &id);
    assert_eq!(contents(&messages), ["first question", "the answer kept", "second question"]);
}

#[test]
fn side_chains_become_sessions_of_their_own() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let side = |n, parent, kind: &str, text: &str| {
        let mut line = line(n, parent, kind, json!(text));
        line["isSidechain"] = json!(true);
        line
    };
    let lines = [
        line(0, None, "user", json!("main question")),
        side(1, None, "user", "side task"),
        side(2, Some(1), "assistant", "side answer"),
        line(3, Some(0), "assistant", json!("main answer")),
    ];
    let result = taken(&mut client, &lines);
    assert_eq!(result.sessions.len(), 2, "{result:?}");
    let mut found: Vec<Vec<String>> = Vec::new();
    for session in &result.sessions {
        let (_, messages) = client.get_session("a", &session.header.id.to_string());
        found.push(messages.into_iter().map(|message| message.content).collect());
    }
    found.sort();
    assert_eq!(found, [["main question", "main answer"], ["side task", "side answer"]]);
    // A side chain hangs from its main conversation, whatever id that got here.
    client.init("b");
    for agent in ["a", "b"] {
        let sessions =
            import_transcript(&mut client, agent, ImportFormat::Auto, &text(&lines), 500).expect("imported").sessions;
        let main = sessions.iter().find(|session| session.header.parent_id.is_none()).expect("the main conversation");
        let aside = sessions.iter().find(|session| session.header.parent_id.is_some()).expect("the side chain");
        assert_eq!(aside.header.parent_id, Some(main.header.id));
        assert!(aside.header.tags.contains(&"side-chain".to_owned()));
    }
}

#[test]
fn calls_results_and_thinking_find_their_place() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let thinking = json!({"type": "thinking", "thinking": "Let me look.", "signature": "c2ln"});
    let lines = [
        line(0, None, "user", json!("list the files")),
        line(
            1,
            Some(0),
            "assistant",
            json!([
                thinking,
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 1.50}},
            ]),
        ),
        line(
            2,
            Some(1),
            "user",
            json!([
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a.txt"}], "is_error": true},
            ]),
        ),
        line(3, Some(2), "assistant", json!([{"type": "text", "text": "One file."}])),
        json!({"type": "summary", "summary": "Files were listed.", "leafUuid": "u3"}),
    ];
    let result = taken(&mut client, &lines);
    assert_eq!(result.skipped_total, 0, "{result:?}");
    let (session, messages) = client.get_session("a", "latest");
    assert_eq!(contents(&messages), ["list the files", "I look.", "a.txt", "One file."]);
    let call = &messages[1].tool_calls[0];
    assert_eq!((&*call.id, &*call.name), ("toolu_1", "Bash"));
    assert!(call.params.get().contains("1.5"), "{}", call.params.get());
    assert_eq!((messages[2].role, messages[2].is_error), (Role::ToolResult, true));
    assert_eq!(messages[2].tool_call_id.as_deref(), Some("toolu_1"));
    let kept = messages[1].provider.as_ref().expect("what must be echoed").get();
    assert!(kept.contains("Let me look.") && kept.contains("c2ln"), "{kept}");
    assert!(messages.iter().all(|message| !message.content.contains("Let me look.")), "thinking is no text");
    assert_eq!(messages[0].timestamp.to_string(), "2025-06-14T10:00:00Z");
    assert_eq!(session.header.started_at.to_string(), "2025-06-14T10:00:00Z");
}

#[test]
fn of_a_broken_tree_nothing_goes_in_silence() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let lines = [
        line(0, Some(99), "user", json!("a parent that is not there")),
        line(1, Some(0), "assistant", json!("an answer")),
        line(2, Some(3), "user", json!("a circle")),
        line(3, Some(2), "assistant", json!("a circle too")),
        line(4, Some(4), "user", json!("its own parent")),
        line(1, Some(0), "assistant", json!("the same id again")),
    ];
    let result = taken(&mut client, &lines);
    assert!(!result.sessions.is_empty());
    let kept: u64 = result.sessions.iter().map(|session| session.header.message_count).sum();
    assert_eq!(kept + result.skipped_total, 6, "each line is in a session, or named with the reason: {result:?}");
    for session in &result.sessions {
        let (session, messages) = client.get_session("a", &session.header.id.to_string());
        assert_eq!(messages.len() as u64, session.header.message_count);
    }
}
