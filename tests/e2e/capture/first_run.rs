//! `capture on` as the first command: what is there is saved, by every program, and it is said what was not.

use std::fs;
use std::time::{Duration, SystemTime};

use chorus_tests::Daemon;
use serde_json::json;

use super::*;

/// A Codex rollout with a question and a reply.
fn codex_rollout(home: &Home) -> PathBuf {
    let dir = home.user_home.join(".codex/sessions/2026/01/03");
    fs::create_dir_all(&dir).expect("created");
    let id = "0197a8c2-0000-7000-8000-000000000001";
    let path = dir.join(format!("rollout-2026-01-03T10-00-00-{id}.jsonl"));
    let line = |kind: &str, payload: Value| {
        format!("{}\n", json!({"timestamp": "2026-01-03T10:00:00.000Z", "type": kind, "payload": payload}))
    };
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let meta = json!({
        "id": id, "timestamp": "2026-01-03T10:00:00.000Z", "cwd": "/home/mara/shop", "originator": "codex_cli_rs",
        "cli_version": "0.104.0", "source": "cli",
    });
    let text = [
        line("session_meta", meta),
        line("response_item", message("user", "input_text", "rename the module")),
        line("response_item", message("assistant", "output_text", "renamed")),
    ];
    fs::write(&path, text.concat()).expect("written");
    path
}

#[test]
fn the_first_command_saves_what_is_there() {
    let home = home();
    let mut claude = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    claude.say("why is checkout slow");
    claude.say("the cart is loaded twice");
    let transcript = fs::read(&claude.path).expect("the transcript");
    codex_rollout(&home);
    let shown = chorusctl(&home, ["capture", "on"]).expect_success();
    assert!(shown.contains("claude-code  on") && shown.contains("~/.claude/projects"), "{shown}");
    let history = chorusctl(&home, ["history"]).expect_success();
    assert!(history.contains("why is checkout slow") && history.contains("rename the module"), "{history}");
    let status = chorusctl(&home, ["--json", "capture", "status"]).expect_json();
    let sources = status["sources"].as_array().expect("sources");
    let counts = |name: &str| {
        let source = sources.iter().find(|source| source["source"] == name).expect("the source");
        (source["conversations"].as_u64(), source["messages"].as_u64())
    };
    assert_eq!((counts("claude-code"), counts("codex")), ((Some(1), Some(2)), (Some(1), Some(2))), "{status}");
    assert_eq!(fs::read(&claude.path).expect("the transcript"), transcript, "capture only reads");
    // Turned on again: nothing is saved twice.
    chorusctl(&home, ["capture", "on"]).expect_success();
    let json = chorusctl(&home, ["--json", "history", "--all-agents"]).expect_json();
    assert_eq!(json["total"], 2, "{json}");
    chorusctl(&home, ["daemon", "stop"]).expect_success();
}

#[test]
fn status_counts_conversations_and_not_copies_of_their_transcripts() {
    let home = home();
    let rollout = codex_rollout(&home);
    let mut claude = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    claude.say("why is checkout slow");
    claude.say("the cart is loaded twice");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for copy in 1..=3 {
        let dir = home.user_home.join(format!(".claude/projects/copy-{copy}"));
        fs::create_dir_all(&dir).expect("created");
        fs::copy(&claude.path, dir.join(claude.path.file_name().expect("a name"))).expect("copied");
        fs::copy(&rollout, rollout.with_file_name(format!("rollout-copy-{copy}.jsonl"))).expect("copied");
    }
    chorusctl(&home, ["capture", "on"]).expect_success();
    let mut counts = |source: &str| {
        let status = status_of(&mut client, source);
        (status.conversations, status.messages)
    };
    assert_eq!((counts("claude-code"), counts("codex")), ((1, 2), (1, 2)));
    claude.say("fix it");
    fs::remove_dir_all(home.user_home.join(".codex/sessions")).expect("removed");
    wait_until("the growth", DEADLINE, || (counts("claude-code") == (1, 3)).then_some(()));
    assert_eq!(counts("codex"), (1, 2));
    // The newest revision counts.
    let text = fs::read_to_string(&claude.path).expect("the transcript").replace("why is", "since when is");
    fs::write(&claude.path, text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).expect("written");
    wait_until("the revision", DEADLINE, || (counts("claude-code") == (1, 2)).then_some(()));
}

#[test]
fn a_first_user_is_told_of_agents_and_of_capture() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let refused = |args: &[&str]| chorusctl(&home, args).expect_failure_with_hint(3).to_owned();
    let commands: [&[&str]; 3] = [&["history"], &["show"], &["save"]];
    for &command in &commands {
        let hint = refused(command);
        assert!(hint.contains("chorusctl agent init NAME") && hint.contains("chorusctl capture on"), "{hint}");
        let told = chorusctl(&home, command).stderr;
        assert!(told.contains("no agents and no captured conversations yet"), "{told}");
    }
    chorusctl(&home, ["capture", "on"]).expect_success();
    let hint = refused(&["history"]);
    assert!(hint.contains("appear as they are written") && !hint.contains("capture on"), "{hint}");
    codex_rollout(&home);
    wait_until("the conversation", DEADLINE, || (chorusctl(&home, ["history"]).status == 0).then_some(()));
    for &command in &commands[1..] {
        let told = chorusctl(&home, command).stderr;
        assert!(told.contains("only conversations of codex"), "{command:?}: {told}");
    }
}

#[test]
fn it_is_off_until_it_is_turned_on() {
    let home = home();
    Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa").say("hello");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert!(captured(&mut client).is_empty());
    assert!(!status_of(&mut client, "claude-code").on);
    let output = chorusctl(&home, ["capture"]);
    assert!(output.stderr.contains("chorusctl capture on"), "{}", output.stderr);
    chorusctl(&home, ["capture", "on", "claude-cod"]).expect_failure_with_hint(2);
}

#[test]
fn status_says_what_will_be_deleted_and_what_could_not_be_read() {
    let home = home();
    let mut old = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    old.say("an old question");
    let days = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    File::options().write(true).open(&old.path).expect("opened").set_modified(days(26)).expect("set");
    let newer = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    append(&newer.path, "{\"type\":\"user\"}\nnot JSON\n");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let shown = chorusctl(&home, ["capture", "on", "claude-code"]);
    assert!(
        shown.stdout.contains("claude-code will delete 1 transcript within 9 days: all are captured"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("1 transcript could not be read"), "{}", shown.stderr);
    let status = status_of(&mut client, "claude-code");
    assert_eq!((status.conversations, status.failed), (1, 1), "{status:?}");
    fs::write(home.user_home.join(".claude/settings.json"), r#"{"cleanupPeriodDays": 99}"#).expect("written");
    assert_eq!(status_of(&mut client, "claude-code").deletion, None);
}
