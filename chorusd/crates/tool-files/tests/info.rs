//! Tests of what is read beside transcripts, in the layouts of the tools.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_tool_files::{ConversationInfo, read_info};
use tempfile::TempDir;

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(path, text).expect("written");
    }
    dir
}

/// Title and project for a transcript beside which these files are.
fn info(transcript: &str, files: &[(&str, &str)]) -> ConversationInfo {
    let dir = directory(&[&[(transcript, "")], files].concat());
    read_info(&dir.path().join(transcript))
}

fn of(project: Option<&str>, title: Option<&str>) -> ConversationInfo {
    ConversationInfo { project: project.map(str::to_owned), title: title.map(str::to_owned) }
}

#[test]
fn each_tool_has_its_own_place() {
    let title = of(None, Some("The retry"));
    let project = of(Some("/srv/the shop"), None);
    let folder = r#"{"folder":"file:///srv/the%20shop"}"#;
    assert_eq!(info("w/1/chatSessions/2.jsonl", &[("w/1/workspace.json", folder)]), project);
    for chat in ["tmp/shop/chats/session-1.jsonl", &format!("tmp/shop/chats/{ID}/2.jsonl")] {
        assert_eq!(info(chat, &[("tmp/shop/.project_root", "/srv/the shop")]), project);
    }
    let workspace = "id: 1\ncwd: /srv/the shop\nname: |-\n  The retry\n  and more\nuser_named: false\n";
    let both = of(Some("/srv/the shop"), Some("The retry"));
    assert_eq!(info("session-state/1/events.jsonl", &[("session-state/1/workspace.yaml", workspace)]), both);
    let list = format!(
        r#"{{"a":{{"sessionId":"1","label":"no"}},"b":{{"sessionId":"{ID}","displayName":"The retry"}},"c":3}}"#
    );
    for session in [format!("main/sessions/{ID}.jsonl"), format!("main/sessions/{ID}-topic-4.jsonl")] {
        assert_eq!(info(&session, &[("main/sessions/sessions.json", &list)]), title);
    }
    let index = format!(
        "{{\"id\":\"{ID}\",\"thread_name\":\"first\"}}\n{{\"id\":\"{ID}\",\"thread_name\":\"The retry\"}}\n{{\"id\":\"2\",\"thread_name\":\"{ID}\"}}\nbroken {ID}\n"
    );
    for rollout in [
        format!("sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl"),
        format!("archived_sessions/rollout-2026-03-01T09-00-00-{ID}_{ID}.jsonl"),
    ] {
        assert_eq!(info(&rollout, &[("session_index.jsonl", &index)]), title, "{rollout}");
    }
    let trusted = ("projects/srv-shop/.workspace-trusted", r#"{"trustedAt":"x","workspacePath":"/srv/the shop"}"#);
    let meta = format!("chats/2b8c/{ID}/meta.json");
    for transcript in [format!("{ID}.jsonl"), format!("{ID}/{ID}.jsonl"), format!("1/subagents/{ID}.jsonl")] {
        let transcript = format!("projects/srv-shop/agent-transcripts/{transcript}");
        assert_eq!(info(&transcript, &[trusted]), project, "{transcript}");
        assert_eq!(info(&transcript, &[trusted, (&meta, r#"{"title":"The retry"}"#)]), both, "{transcript}");
        let meta = [(&*meta, r#"{"cwd":"/srv/the shop","title":"New Agent"}"#)];
        assert_eq!(info(&transcript, &meta), project, "{transcript}");
    }
}

#[test]
fn the_history_of_aider_lies_in_its_project() {
    let dir = directory(&[(".aider.chat.history.md", "")]);
    let project = dir.path().canonicalize().expect("a path");
    assert_eq!(read_info(&dir.path().join(".aider.chat.history.md")), of(project.to_str(), None));
    assert_eq!(info("history.md", &[]), ConversationInfo::default(), "a copy can lie anywhere");
}

#[test]
fn what_is_missing_broken_or_too_long_is_left_out() {
    let nothing = ConversationInfo::default();
    let rollout = format!("sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl");
    let long = format!("{{\"folder\":\"file:///srv/shop\",\"x\":\"{}\"}}", "y".repeat(1 << 20));
    for (transcript, beside, text) in [
        ("w/1/chatSessions/2.jsonl", "w/1/workspace.json", "{\"folder\":"),
        ("w/1/chatSessions/2.jsonl", "w/1/workspace.json", "{\"folder\":\"vscode-remote://wsl/srv\"}"),
        ("w/1/chatSessions/2.jsonl", "w/1/workspace.json", &long),
        ("s/1/events.jsonl", "s/1/workspace.yaml", "cwd: shop\nname: null\nsummary: \"a"),
        ("tmp/shop/chats/1.jsonl", "tmp/shop/.project_root", ""),
        ("main/sessions/1.jsonl", "main/sessions/sessions.json", "[]"),
        (&rollout, "session_index.jsonl", "{\"id\":1}\n"),
        // The index of another directory.
        (&rollout, "sessions/session_index.jsonl", &format!("{{\"id\":\"{ID}\",\"thread_name\":\"x\"}}\n")),
    ] {
        assert_eq!(info(transcript, &[]), nothing, "{transcript}");
        assert_eq!(info(transcript, &[(beside, text)]), nothing, "{beside}");
    }
    assert_eq!(read_info(Path::new("no/such/dir/events.jsonl")), nothing);
}

#[test]
fn of_a_long_index_the_end_is_read() {
    let rollout = format!("sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl");
    let line = format!("{{\"id\":\"{ID}\",\"thread_name\":\"The retry\"}}\n");
    let others = "{\"id\":\"other\",\"thread_name\":\"x\"}\n".repeat(40_000);
    assert!(others.len() > 1 << 20);
    assert_eq!(info(&rollout, &[("session_index.jsonl", &format!("{others}{line}"))]), of(None, Some("The retry")));
    assert_eq!(info(&rollout, &[("session_index.jsonl", &format!("{line}{others}"))]), ConversationInfo::default());
}

#[test]
fn links_and_pipes_are_not_read() {
    let dir = directory(&[("w/1/chatSessions/2.jsonl", ""), ("elsewhere", r#"{"folder":"file:///srv"}"#)]);
    let beside: PathBuf = dir.path().join("w/1/workspace.json");
    symlink(dir.path().join("elsewhere"), &beside).expect("a link");
    assert_eq!(read_info(&dir.path().join("w/1/chatSessions/2.jsonl")), ConversationInfo::default());
    fs::remove_file(&beside).expect("removed");
    assert!(Command::new("mkfifo").arg(&beside).status().expect("mkfifo").success());
    assert_eq!(read_info(&dir.path().join("w/1/chatSessions/2.jsonl")), ConversationInfo::default());
}
