//! Conversations of Gemini CLI, opencode, GitHub Copilot CLI, pi and OpenClaw: imported, grown, found by project and program.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

fn lines(of: &[Value]) -> String {
    of.iter().map(|line| format!("{line}\n")).collect()
}

/// Writes a transcript below the home's directory for temporary files.
fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.temp_dir().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, text).expect("written");
    path
}

fn import(home: &Home, path: &Path) -> String {
    chorusctl(home, ["import", path.to_str().expect("UTF-8")]).expect_success()
}

/// Imports the beginning of a conversation, then the whole, then the whole again. Returns the only session of the program
/// that is not a subagent's, with its messages as `role: text`.
pub(super) fn grows(home: &Home, program: &str, name: &str, (part, whole): (&str, &str)) -> (Value, Vec<String>) {
    let path = write(home, name, part);
    import(home, &path);
    fs::write(&path, whole).expect("written");
    assert!(import(home, &path).contains("added "), "it grew");
    assert!(import(home, &path).contains("up to date"), "nothing is new");
    let listed = chorusctl(home, ["history", "--json", "--source", program]).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    let main: Vec<&Value> = sessions.iter().filter(|one| one["parent_id"].is_null()).collect();
    assert_eq!(main.len(), 1, "{listed}");
    let shown = chorusctl(home, ["show", main[0]["id"].as_str().expect("an id"), "--json"]).expect_json();
    let messages = shown["messages"].as_array().expect("messages").iter();
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let texts = messages.map(|one| format!("{}: {}", text(&one["role"]), text(&one["content"]))).collect();
    (main[0].clone(), texts)
}

pub(super) fn check_source(session: &Value, program: &str, conversation: &str) {
    let source = &session["source"];
    assert_eq!((&source["program"], &source["conversation"]), (&json!(program), &json!(conversation)));
    assert_eq!((&source["project"], &source["revision"]), (&json!("/srv/shop"), &json!(1)), "{source}");
    assert_eq!(session["agent_name"], program);
}

#[test]
fn chats_of_gemini_cli_grow_and_their_subagents_are_linked() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let header = |id: &str, kind: &str| json!({"sessionId": id, "projectHash": "x", "startTime": "2026-03-01T09:00:00Z", "kind": kind, "directories": ["/srv/shop"]});
    let call = json!({"id": "c1", "name": "invoke_agent", "args": {}, "status": "success",
                      "result": [{"functionResponse": {"id": "c1", "name": "invoke_agent", "response": {"output": "three"}}}]});
    let said = |id: &str, kind: &str, text: &str| json!({"id": id, "timestamp": "2026-03-01T09:00:01Z", "type": kind, "content": text, "model": "gemini-x"});
    let mut reply = said("g1", "gemini", "Counting.");
    let first = [header(ID, "main"), said("u1", "user", "Count them"), reply.clone()];
    reply["toolCalls"] = json!([call]);
    let more = [reply, said("g2", "gemini", "Three."), json!({"$set": {"summary": "A count"}})];
    let whole = lines(&[&first[..], &more[..]].concat());
    let (session, texts) = grows(&home, "gemini", "chats/session-1.jsonl", (&lines(&first), &whole));
    assert_eq!(texts, ["user: Count them", "assistant: Counting.", "tool_result: three", "assistant: Three."]);
    check_source(&session, "gemini", ID);
    assert_eq!((&session["description"], &session["model"]), (&json!("A count"), &json!("gemini-x")));
    let subagent = "39297bd7-7b95-4d7c-9d48-64bcd97e4e82";
    let text = lines(&[header(subagent, "subagent"), said("u1", "user", "Count"), said("g1", "gemini", "three")]);
    import(&home, &write(&home, &format!("chats/{ID}/{subagent}.jsonl"), &text));
    let listed = chorusctl(&home, ["history", "--json", "--source", "gemini"]).expect_json();
    let child =
        listed["sessions"].as_array().expect("a list").iter().find(|one| one["id"] == subagent).expect("the subagent");
    assert_eq!(child["parent_id"], session["id"]);
    assert_eq!(child["source"]["conversation"], format!("{ID}/{subagent}"));
}

#[test]
fn exports_of_opencode_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let message = |role: &str, number: u64, text: &str| {
        json!({"info": {"id": format!("msg_{number}"), "role": role, "providerID": "p", "modelID": "m", "time": {"created": 1_772_355_600_000_u64 + number}},
               "parts": [{"type": "text", "text": text}]})
    };
    let info = json!({"id": "ses_1", "directory": "/srv/shop", "title": "The files", "time": {"created": 1_772_355_600_000_u64}});
    let part = json!({"info": info, "messages": [message("user", 1, "List them"), message("assistant", 2, "a.py")]});
    let mut whole = part.clone();
    whole["messages"].as_array_mut().expect("a list").push(message("user", 3, "Thanks"));
    let (session, texts) = grows(&home, "opencode", "export.json", (&part.to_string(), &whole.to_string()));
    assert_eq!(texts, ["user: List them", "assistant: a.py", "user: Thanks"]);
    check_source(&session, "opencode", "ses_1");
    assert_eq!((&session["description"], &session["model"]), (&json!("The files"), &json!("p/m")));
}

#[test]
fn sessions_of_copilot_grow_with_their_subagents() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let event = |number: u64, kind: &str, data: Value| json!({"type": kind, "data": data, "id": format!("e{number}"), "parentId": null, "timestamp": format!("2026-03-01T09:00:0{number}Z")});
    let context = json!({"cwd": "/srv/shop", "branch": "main"});
    let mut subagent = event(3, "user.message", json!({"content": "Count"}));
    subagent["agentId"] = "agent-1".into();
    let first = [
        event(0, "session.start", json!({"sessionId": ID, "version": 1, "selectedModel": "m", "context": context})),
        event(1, "user.message", json!({"content": "Count them"})),
        event(
            2,
            "assistant.message",
            json!({"content": "", "model": "m", "toolRequests": [{"toolCallId": "c1", "name": "task", "arguments": {}}]}),
        ),
        subagent,
    ];
    let more = [
        event(
            4,
            "tool.execution_complete",
            json!({"toolCallId": "c1", "success": true, "result": {"content": "three"}}),
        ),
        event(5, "assistant.message", json!({"content": "Three.", "model": "m"})),
    ];
    let whole = lines(&[&first[..], &more[..]].concat());
    let (session, texts) = grows(&home, "copilot", "events.jsonl", (&lines(&first), &whole));
    assert_eq!(texts, ["user: Count them", "assistant: ", "tool_result: three", "assistant: Three."]);
    check_source(&session, "copilot", ID);
    assert_eq!(session["source"]["branch"], "main");
    let listed = chorusctl(&home, ["history", "--json", "--source", "copilot"]).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    let child = sessions.iter().find(|one| one["parent_id"] == session["id"]).expect("the subagent");
    assert_eq!(child["source"]["conversation"], format!("{ID}/agent-1"));
}

#[test]
fn sessions_of_pi_grow_and_a_new_branch_is_a_revision() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let said = |id: &str, parent: Value, role: &str, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-03-01T09:00:01Z",
               "message": {"role": role, "content": [{"type": "text", "text": text}], "provider": "p", "model": "m"}})
    };
    let first = [
        json!({"type": "session", "version": 3, "id": ID, "timestamp": "2026-03-01T09:00:00Z", "cwd": "/srv/shop"}),
        said("a", Value::Null, "user", "one"),
        said("b", json!("a"), "assistant", "1"),
    ];
    let more = [said("c", json!("b"), "user", "two")];
    let whole = lines(&[&first[..], &more[..]].concat());
    let (session, texts) = grows(&home, "pi", "session.jsonl", (&lines(&first), &whole));
    assert_eq!(texts, ["user: one", "assistant: 1", "user: two"]);
    check_source(&session, "pi", ID);
    let branched = whole + &lines(&[said("d", json!("b"), "user", "instead")]);
    let told = import(&home, &write(&home, "session.jsonl", &branched));
    assert!(told.contains("revision 2"), "{told}");
    assert_eq!(
        chorusctl(&home, ["history", "--json", "--source", "pi"]).expect_json()["sessions"].as_array().map(Vec::len),
        Some(2)
    );
    let custom = json!({"type": "custom", "customType": "openclaw.cache-ttl", "id": "z", "parentId": "b"});
    let of_openclaw = lines(&[&first[..], &[custom]].concat());
    import(&home, &write(&home, "claw.jsonl", &of_openclaw));
    let listed = chorusctl(&home, ["history", "--json", "--source", "openclaw"]).expect_json();
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn transcripts_of_cursors_agent_grow_and_belong_to_cursor() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let said = |role: &str, content: Value| json!({"role": role, "message": {"content": content}});
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let time = "<timestamp>Sunday, Mar 1, 2026, 9:00 AM (UTC)</timestamp>\n";
    let prompt = said("user", text(&format!("{time}<user_query>\nCount them\n</user_query>")));
    let call = said("assistant", json!([{"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]));
    let end = json!({"type": "turn_ended", "status": "success"});
    let (part, whole) = ([prompt.clone(), call.clone()], [prompt, call, said("assistant", text("Three.")), end]);
    write(&home, "projects/srv-shop/.workspace-trusted", r#"{"workspacePath":"/srv/shop"}"#);
    let name = format!("projects/srv-shop/agent-transcripts/{ID}/{ID}.jsonl");
    let (session, texts) = grows(&home, "cursor", &name, (&lines(&part), &lines(&whole)));
    assert_eq!(texts, ["user: Count them", "assistant: ", "assistant: Three."]);
    check_source(&session, "cursor", ID);
    assert_eq!(session["started_at"], "2026-03-01T09:00:00Z");
    // A copy that lies elsewhere is the same conversation.
    assert!(import(&home, &write(&home, &format!("{ID}.jsonl"), &lines(&whole))).contains("up to date"));
    // A subagent whose transcript is older than that of its conversation, which continued.
    let (main, subagent) = ("9d1c6a2e-0f3b-4c55-8a70-5b6b1f1f0001", "39297bd7-7b95-4d7c-9d48-64bcd97e4e82");
    let dir = "more/projects/srv-shop/agent-transcripts";
    let other = [said("user", text("Count")), said("assistant", text("three"))];
    let child = write(&home, &format!("{dir}/{main}/subagents/{subagent}.jsonl"), &lines(&other));
    let file = fs::File::options().write(true).open(child).expect("the transcript");
    let written = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_772_355_600);
    file.set_modified(written).expect("the time");
    write(&home, &format!("{dir}/{main}/{main}.jsonl"), &lines(&whole));
    import(&home, &home.temp_dir().join("more"));
    let listed = chorusctl(&home, ["history", "--json", "--source", "cursor"]).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    let child = sessions.iter().find(|one| one["id"] == subagent).expect("the subagent");
    assert_eq!((&child["parent_id"], &child["started_at"]), (&json!(main), &json!("2026-03-01T09:00:00Z")));
}
