//! Conversations of Amp, aider, Cline, Roo Code and VS Code: imported, grown, and found by project and program.

use std::fs;

use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use super::coding_tools::{check_source, grows};
use crate::home;

/// Writes a file of a task, beside its transcript.
fn write(home: &Home, name: &str, value: &Value) {
    let path = home.temp_dir().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(path, value.to_string()).expect("written");
}

#[test]
fn threads_of_amp_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let text = |number: u64, role: &str, text: &str| json!({"role": role, "messageId": number, "content": [{"type": "text", "text": text}]});
    let thread = |messages: &[Value]| {
        json!({"v": 4, "id": "T-0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001", "created": 1_768_178_184_000_u64, "title": "The loop",
               "env": {"initial": {"trees": [{"uri": "file:///srv/shop"}]}}, "messages": messages})
        .to_string()
    };
    let first = [text(0, "user", "Fix it"), text(1, "assistant", "Done.")];
    let whole = thread(&[&first[..], &[text(2, "user", "Thanks")]].concat());
    let (session, texts) = grows(&home, "amp", "thread.json", (&thread(&first), &whole));
    assert_eq!(texts, ["user: Fix it", "assistant: Done.", "user: Thanks"]);
    check_source(&session, "amp", "T-0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001");
    assert_eq!(session["description"], "The loop");
}

#[test]
fn runs_of_aider_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let start =
        "\n# aider chat started at 2026-11-26 21:23:49\n\n> Model: p/m with diff edit format  \n\n#### Fix it  \n\nDo";
    let whole = format!("{start}ne.\n\n> Tokens: 2.4k sent, 350 received.  \n\n#### Thanks  \n");
    let (session, texts) = grows(&home, "aider", ".aider.chat.history.md", (start, &whole));
    assert_eq!(texts, ["user: Fix it", "assistant: Done.", "user: Thanks"]);
    let source = &session["source"];
    let conversation = source["conversation"].as_str().unwrap_or_default();
    assert!(conversation.starts_with("20261126T212349-"), "{source}");
    assert_eq!((&source["program"], &session["model"]), (&json!("aider"), &json!("p/m")));
}

#[test]
fn tasks_of_cline_grow_and_take_what_is_beside_them() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let dir = "globalStorage/saoudrizwan.claude-dev/tasks/1763727100000";
    let request = json!({"tokensIn": 2, "tokensOut": 8}).to_string();
    let ui = json!([{"ts": 1_763_727_100_100_u64, "type": "say", "say": "api_req_started", "text": request, "conversationHistoryIndex": -1}]);
    write(&home, &format!("{dir}/ui_messages.json"), &ui);
    let items = json!([{"id": "1763727100000", "cwdOnTaskInitialization": "/srv/shop"}]);
    write(&home, "globalStorage/saoudrizwan.claude-dev/state/taskHistory.json", &items);
    let text = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let first = [text("user", "<task>\nFix it\n</task>"), text("assistant", "Done.")];
    let whole = json!([first[0], first[1], text("user", "Thanks")]).to_string();
    let name = format!("{dir}/api_conversation_history.json");
    let (session, texts) = grows(&home, "cline", &name, (&json!(first).to_string(), &whole));
    assert_eq!(texts, ["user: Fix it", "assistant: Done.", "user: Thanks"]);
    check_source(&session, "cline", "1763727100000");
    let shown = chorusctl(&home, ["show", session["id"].as_str().expect("an id"), "--json"]).expect_json();
    assert_eq!(shown["messages"][1]["usage"]["output_tokens"], 8);
    // The whole directory is one task.
    let dir = home.temp_dir().join("globalStorage");
    let told = chorusctl(&home, ["import", dir.to_str().expect("UTF-8"), "--json"]).expect_json();
    assert_eq!((&told["sessions"], &told["skipped_total"]), (&json!([]), &json!(0)), "{told}");
}

#[test]
fn tasks_of_roo_code_are_linked_to_their_parents() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let ids = ["019a0000-0000-7000-8000-000000000001", "019a0000-0000-7000-8000-000000000002"];
    for (id, parent) in [(ids[0], Value::Null), (ids[1], json!(ids[0]))] {
        let dir = format!("rooveterinaryinc.roo-cline/tasks/{id}");
        write(
            &home,
            &format!("{dir}/history_item.json"),
            &json!({"id": id, "number": 1, "workspace": "/srv/shop", "parentTaskId": parent}),
        );
        let transcript = json!({"version": 2, "messages": [{"role": "user", "content": "<task>\nCount\n</task>", "ts": 1_763_727_100_000_u64}]});
        write(&home, &format!("{dir}/api_conversation_history.json"), &transcript);
        let path = home.temp_dir().join(dir).join("api_conversation_history.json");
        chorusctl(&home, ["import", path.to_str().expect("UTF-8")]).expect_success();
    }
    let listed = chorusctl(&home, ["history", "--json", "--source", "roo"]).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    let child = sessions.iter().find(|one| one["id"] == ids[1]).expect("the subtask");
    assert_eq!((sessions.len(), &child["parent_id"]), (2, &json!(ids[0])), "{listed}");
    assert_eq!(child["source"]["project"], "/srv/shop");
}

#[test]
fn chats_of_vs_code_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let id = "3b7e1f1b-0000-4000-8000-000000000001";
    let request = |number: u64| {
        json!({"requestId": format!("request_{number}"), "timestamp": 1_763_727_100_000_u64, "message": {"text": format!("Fix {number}")},
               "modelId": "copilot/m", "response": [{"value": "Fixed."}]})
    };
    let state = json!({"kind": 0, "v": {"sessionId": id, "responderUsername": "GitHub Copilot", "customTitle": "The retry", "requests": [request(1)]}});
    let change = json!({"kind": 2, "k": ["requests"], "v": [request(2)]});
    let (session, texts) =
        grows(&home, "vscode-chat", "chat.jsonl", (&state.to_string(), &format!("{state}\n{change}\n")));
    assert_eq!(texts, ["user: Fix 1", "assistant: Fixed.", "user: Fix 2", "assistant: Fixed."]);
    assert_eq!(
        (&session["id"], &session["description"], &session["model"]),
        (&json!(id), &json!("The retry"), &json!("m"))
    );
}
