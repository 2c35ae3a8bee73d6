//! Projects and titles that only the path of a transcript, or a file beside it, tells.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::Client;
use chorus_proto::methods::import::{Add, AddParams, Begin, BeginParams, Commit, CommitParams, CommitResult};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.temp_dir().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, text).expect("written");
    path
}

/// Imports a file, and returns the only session of its program.
fn import(home: &Home, path: &Path, program: &str) -> Value {
    chorusctl(home, ["import", path.to_str().expect("UTF-8")]).expect_success();
    let listed = chorusctl(home, ["history", "--json", "--source", program]).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    assert_eq!(sessions.len(), 1, "{listed}");
    sessions[0].clone()
}

fn rollout(cwd: &str) -> String {
    let item = |role: &str, kind: &str, text: &str| {
        json!({"timestamp": "2026-03-01T09:00:01Z", "type": "response_item",
               "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}})
    };
    let start = json!({"timestamp": "2026-03-01T09:00:00Z", "type": "session_meta",
                       "payload": {"id": ID, "timestamp": "2026-03-01T09:00:00Z", "cwd": cwd}});
    format!("{start}\n{}\n{}\n", item("user", "input_text", "List them"), item("assistant", "output_text", "a.py"))
}

#[test]
fn runs_of_aider_are_found_by_the_directory_of_the_history() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let text = "\n# aider chat started at 2026-11-26 21:23:49\n\n#### Fix it  \n\nDone.\n";
    let path = write(&home, "shop/.aider.chat.history.md", text);
    let session = import(&home, &path, "aider");
    let project = path.parent().expect("a directory").canonicalize().expect("a path");
    assert_eq!(session["source"]["project"], json!(project));
    let found = chorusctl(&home, ["history", "--json", "--project", project.to_str().expect("UTF-8")]).expect_json();
    assert_eq!(found["sessions"][0]["id"], session["id"]);
}

#[test]
fn chats_of_vs_code_have_the_project_of_their_workspace() {
    let home = home();
    let _daemon = Daemon::start(&home);
    write(&home, "workspaceStorage/1/workspace.json", r#"{"folder": "file:///srv/the%20shop"}"#);
    let request = json!({"requestId": "r1", "message": {"text": "Fix it"}, "response": [{"value": "Fixed."}]});
    let chat = json!({"version": 3, "sessionId": ID, "requests": [request], "responderUsername": "GitHub Copilot"});
    let path = write(&home, &format!("workspaceStorage/1/chatSessions/{ID}.json"), &chat.to_string());
    assert_eq!(import(&home, &path, "vscode-chat")["source"]["project"], "/srv/the shop");
}

#[test]
fn a_conversation_of_codex_takes_the_name_that_it_is_given_later() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let path = write(
        &home,
        &format!(".codex/sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl"),
        &rollout("/srv/shop"),
    );
    let title = |session: &Value| session["description"].clone();
    assert_eq!(title(&import(&home, &path, "codex")), "List them");
    for name in ["The files", "The three files"] {
        let line = json!({"id": ID, "thread_name": name, "updated_at": "2026-03-01T10:00:00Z"});
        write(&home, ".codex/session_index.jsonl", &format!("{line}\n"));
        let session = import(&home, &path, "codex");
        assert_eq!((title(&session), &session["source"]["project"]), (json!(name), &json!("/srv/shop")));
    }
    fs::remove_file(home.temp_dir().join(".codex/session_index.jsonl")).expect("removed");
    assert_eq!(title(&import(&home, &path, "codex")), "The three files");
}

/// Imports a transcript with a project and a title.
fn import_with_info(client: &mut Client, text: &str, (project, title): (&str, &str)) -> CommitResult {
    let info = BeginParams { project: Some(project.into()), title: Some(title.into()), ..BeginParams::default() };
    let import = client.call::<Begin>(&info).expect("begun").import;
    client.call::<Add>(&AddParams { import, data: Some(text.into()), data_base64: None }).expect("added");
    client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("committed")
}

#[test]
fn what_the_transcript_itself_says_counts() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let header = json!({"sessionId": ID, "projectHash": "x", "startTime": "2026-03-01T09:00:00Z", "kind": "main", "directories": ["/srv/shop"]});
    let said = |id: &str, kind: &str, text: &str| json!({"id": id, "timestamp": "2026-03-01T09:00:01Z", "type": kind, "content": text});
    let chat = format!("{header}\n{}\n{}\n", said("1", "user", "List them"), said("2", "gemini", "a.py"));
    let about = |result: CommitResult| {
        let header = result.sessions.into_iter().next().expect("a session").header;
        (header.source.and_then(|source| source.project), header.description)
    };
    let both = |project: &str, title: &str| (Some(project.to_owned()), Some(title.to_owned()));
    assert_eq!(about(import_with_info(&mut client, &chat, ("/elsewhere", "Given"))), both("/srv/shop", "Given"));
    let named = format!("{chat}{}\n", json!({"$set": {"summary": "Its own"}}));
    assert_eq!(about(import_with_info(&mut client, &named, ("/elsewhere", "Given"))), both("/srv/shop", "Its own"));
    assert_eq!(
        about(import_with_info(&mut client, &rollout(""), ("/elsewhere", " "))),
        both("/elsewhere", "List them")
    );
}
