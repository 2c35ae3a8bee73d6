//! `--json` prints the documented result, one value, and nothing else.

use chorus_tests::Daemon;
use chorus_tests::ctl::chorusctl;
use serde_json::Value;

use crate::home;

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn results_have_the_documented_keys() {
    let home = home();
    let _daemon = Daemon::start(&home);
    // In order: each step stands on those before it.
    let story: [(&[&str], &[&str]); 17] = [
        (&["agent", "init", "a"], &["agent", "revived"]),
        (&["agent", "list"], &["agents", "chosen"]),
        (&["agent", "use", "a"], &["agent"]),
        (&["agent", "show", "a"], &["agent", "config", "sessions"]),
        (&["agent", "config", "a"], &["agent", "config"]),
        (&["agent", "config", "a", "idle_timeout", "1h"], &["agent", "config", "old"]),
        (&["context", "append", "one"], &["appended", "messages", "secrets_found"]),
        (&["context", "show"], &["agent_name", "context", "messages", "next", "working_set"]),
        (&["context", "save", "words"], &["cleared", "session"]),
        (&["context", "history"], &["page", "pages", "sessions", "total"]),
        (&["context", "append", "two"], &["appended", "messages", "secrets_found"]),
        (&["context", "restore", "latest"], &["messages", "saved_first", "session"]),
        (&["context", "clear", "--yes"], &["discarded", "saved"]),
        (&["session", "show", "latest"], &["messages", "next", "session"]),
        (&["status"], &["agents", "daemon", "discord", "models", "search", "tasks"]),
        (&["agent", "destroy", "a", "--yes"], &["agent", "files", "saved"]),
        (&["agent", "list", "--all"], &["agents", "chosen"]),
    ];
    for (command, expected) in story {
        let said = chorusctl(&home, ["--json"].iter().chain(command));
        let stderr = said.stderr.clone();
        let value = said.expect_json();
        assert_eq!(keys(&value), expected, "{command:?} {stderr}");
    }
}

#[test]
fn json_may_be_asked_for_in_three_ways() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    for args in [&["--json", "agent", "list"][..], &["agent", "list", "--json"], &["--format", "json", "agent", "list"]]
    {
        assert_eq!(chorusctl(&home, args.iter().copied()).expect_json()["agents"][0]["name"], "a", "{args:?}");
    }
    let lines = chorusctl(&home, ["--format", "jsonl", "agent", "list"]).expect_success();
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
}

#[test]
fn a_failure_is_one_line_of_json() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    let cases: [(&[&str], u8, &str); 6] = [
        (&["--json", "restore", "nothing-like-it"], 3, "session_not_found"),
        (&["--format", "jsonl", "agent", "show", "b"], 3, "agent_not_found"),
        (&["--json", "import", "/nothing/like/it"], 3, "not_found"),
        (&["--json", "agent", "destroy", "a"], 6, "refused"),
        (&["status", "--json", "--nonsense"], 2, "usage"),
        (&["--format=json", "nonsense"], 2, "usage"),
    ];
    for (command, status, kind) in cases {
        let said = chorusctl(&home, command.iter().copied());
        assert_eq!(said.status, i32::from(status), "{command:?} {}", said.stderr);
        let report: Value = serde_json::from_str(&said.stderr).expect("one value");
        assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
        assert_eq!(keys(&report), ["error"]);
        assert_eq!(keys(&report["error"]), ["hint", "kind", "message"], "{report}");
        assert_eq!(report["error"]["kind"], kind, "{report}");
    }
}
