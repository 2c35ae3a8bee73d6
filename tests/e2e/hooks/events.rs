//! The commands as Claude Code runs them, with an event on standard input.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use super::hooks;
use crate::home;

const OLD: &str = "11111111-1111-4111-8111-111111111111";
const NEW: &str = "22222222-2222-4222-8222-222222222222";

/// A directory of a project with a repository.
fn project(home: &Home) -> PathBuf {
    let dir = super::user_home(home).join("shop");
    fs::create_dir_all(dir.join(".git")).expect("a directory");
    fs::create_dir_all(dir.join("src")).expect("a directory");
    fs::canonicalize(dir).expect("a path")
}

/// Writes a transcript of Claude Code and returns its path.
fn write_transcript(home: &Home, session: &str, project: &Path, texts: &[&str]) -> PathBuf {
    let mut text = String::new();
    let mut parent = Value::Null;
    for (number, said) in texts.iter().enumerate() {
        let kind = if number % 2 == 0 { "user" } else { "assistant" };
        let id = format!("{session}-{number}");
        let line = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": session, "cwd": project,
            "timestamp": format!("2026-03-01T10:00:{number:02}Z"), "message": {"role": kind, "id": id, "content": said}});
        text.push_str(&format!("{line}\n"));
        parent = json!(id);
    }
    let path = home.temp_dir().join(format!("{session}.jsonl"));
    fs::write(&path, text).expect("a transcript");
    path
}

fn run(home: &Home, event: &Value) -> Output {
    hooks(home, &["run", "claude-code"], &event.to_string())
}

fn start(home: &Home, source: &str, session: &str, cwd: &Path) -> String {
    let event = json!({"hook_event_name": "SessionStart", "source": source, "session_id": session, "cwd": cwd,
                       "transcript_path": "/nowhere.jsonl"});
    run(home, &event).expect_success()
}

#[test]
fn a_conversation_starts_with_the_earlier_ones_of_its_project() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let project = project(&home);
    let transcript = write_transcript(&home, OLD, &project, &["Paint the \u{1b}[31mfence", "Green it is."]);
    chorusctl(&home, ["import", transcript.to_str().expect("UTF-8")]).expect_success();
    for source in ["startup", "clear"] {
        let said = start(&home, source, NEW, &project.join("src"));
        assert!(said.contains("Paint the") && said.contains("claude-code") && said.contains("11111111"), "{said}");
        assert!(said.contains("not instructions") && !said.contains('\u{1b}'), "{said}");
    }
    // Its own past is not another conversation; in a resumed one it is there already.
    assert_eq!(start(&home, "startup", OLD, &project), "");
    assert_eq!(start(&home, "resume", NEW, &project), "");
    let compacted = start(&home, "compact", OLD, &project);
    assert!(compacted.contains("chorusctl show 11111111"), "{compacted}");
    let other = home.temp_dir().join("shop-2");
    fs::create_dir_all(&other).expect("a directory");
    assert_eq!(start(&home, "startup", NEW, &other), "", "another project");
    // A conversation in the user's home is not about everything below it.
    assert_eq!(start(&home, "startup", NEW, &super::user_home(&home)), "");
    assert_eq!(start(&home, "startup", NEW, Path::new("relative")), "");
}

#[test]
fn a_conversation_is_saved_before_a_compaction_and_at_its_end() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let project = project(&home);
    let texts = ["Paint the fence", "Green it is.", "And the key is AKIAIOSFODNN7EXAMPLE", "Noted."];
    for (event, count) in [("PreCompact", 2), ("SessionEnd", 4)] {
        let transcript = write_transcript(&home, NEW, &project, &texts[..count]);
        let said = run(
            &home,
            &json!({"hook_event_name": event, "session_id": NEW, "transcript_path": transcript, "cwd": project}),
        );
        assert_eq!((said.status, &*said.stdout, &*said.stderr), (0, "", ""));
        wait_until("the saved conversation", DEADLINE, || {
            let listed = chorusctl(&home, ["history", "--source", "claude-code", "--json"]).expect_json();
            (listed["sessions"][0]["message_count"] == count && listed["total"] == 1).then_some(())
        });
    }
    let shown = chorusctl(&home, ["show", "22222222"]).expect_success();
    assert!(shown.contains("Noted.") && !shown.contains("AKIAIOSFODNN7EXAMPLE"), "{shown}");
    // A conversation that was deleted stays away.
    chorusctl(&home, ["rm", "22222222"]).expect_success();
    let deleted = write_transcript(&home, NEW, &project, &["Paint the fence", "Green it is.", "More", "And more"]);
    chorusctl(&home, ["--no-autostart", "hooks", "run", "claude-code", "--save", deleted.to_str().expect("UTF-8")])
        .expect_success();
    let listed = chorusctl(&home, ["history", "--source", "claude-code", "--json"]).expect_json();
    assert_eq!(listed["total"], 0, "{listed}");
}

#[test]
fn without_a_daemon_or_an_event_nothing_happens() {
    let home = home();
    let project = project(&home);
    let transcript = write_transcript(&home, NEW, &project, &["Paint the fence", "Green it is."]);
    for event in ["SessionStart", "PreCompact", "SessionEnd", "Stop"] {
        let input = json!({"hook_event_name": event, "source": "startup", "session_id": NEW,
                           "transcript_path": transcript, "cwd": project});
        for input in [input.to_string(), "{".to_owned(), String::new(), "[]".to_owned()] {
            let said = hooks(&home, &["run", "claude-code"], &input);
            assert_eq!((said.status, &*said.stdout, &*said.stderr), (0, "", ""), "{event} {input}");
        }
    }
    let status = chorusctl(&home, ["--no-autostart", "status"]);
    assert_eq!(status.status, 4, "no daemon was started: {status:?}");
}
