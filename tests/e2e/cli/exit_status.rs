//! Exit statuses, and errors that a person can act on.

use std::fs;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::start_fake_daemon_with;
use serde_json::Value;

use crate::home;

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    let half = chorusctl(&home, ["agent"]);
    assert!(half.status == 2 && half.stderr.contains("init"), "half a command shows how it may go on: {half:?}");
    for args in [
        &["nonsense"][..],
        &["agent", "init"],
        &["agent", "init", "b", "--idle-timeout", "soon"],
        &["agent", "init", "Not A Name"],
        &["context", "append", "x", "--role", "robot"],
        &["context", "restore"],
        &["context", "history", "--since", "whenever"],
        &["context", "history", "--page", "0"],
        &["context", "show", "--last", "-1"],
        &["--timeout", "soon", "status"],
        &["--format", "xml", "status"],
        &["status", "--colour"],
    ] {
        let said = chorusctl(&home, args.iter().copied());
        assert_eq!((said.status, &*said.stdout), (2, ""), "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains("error: "), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn a_value_that_cannot_be_is_answered_with_what_one_looks_like() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    let long = "x".repeat(300);
    for (args, example) in [
        (&["agent", "init", "b", "--idle-timeout", "5x"][..], "1h30m"),
        (&["agent", "init", "b", "--permissions", "none"], "standard"),
        (&["agent", "config", "a", "idle_timeout", "soon"], "1h30m"),
        (&["agent", "config", "a", "permissions", "none"], "standard"),
        (&["agent", "config", "a", "window_messages", "many"], "50"),
        (&["agent", "config", "a", "id", "mine"], "model"),
        (&["agent", "config", "a", "name", "Not A Name"], "not-a-name"),
        (&["context", "append", "x", "--key", &long], "UUID"),
        (&["context", "history", "--since", "whenever"], "7d"),
        (&["context", "history", "--limit", "99999"], "page"),
        (&["context", "rewind", "0"], "last turn"),
        (&["trash", "empty", "--yes", "--older-than", "soon"], "30d"),
    ] {
        let said = chorusctl(&home, args.iter().copied());
        let said = said.expect_failure_with_hint(2);
        let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
        assert!(hint.contains(example), "{args:?}: {said}");
    }
    // What the command line itself refuses is told in clap's own form.
    let said = chorusctl(&home, ["--timeout", "soon", "status"]);
    assert!(said.status == 2 && said.stderr.contains("for example 10s"), "{said:?}");
}

/// A daemon that was started before an update goes on running.
#[test]
fn the_status_of_a_daemon_of_an_earlier_release_is_shown() {
    let home = home();
    let path = format!("{}/../proto/golden/v1/status.result.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_slice(&fs::read(path).expect("a golden file")).expect("JSON");
    start_fake_daemon_with(&home, move |mut asked| match asked.params.get("limit") {
        Some(_) => {
            asked.send_error("invalid_params", "unknown field `limit`, expected `agent`", "see the documentation")
        }
        None if asked.method == "status" => asked.send_result(golden["result"].clone()),
        None => asked.disconnect(),
    });
    for args in [&["status"][..], &["daemon", "status"]] {
        assert!(chorusctl(&home, args.iter().copied()).expect_success().starts_with("chorusd "), "{args:?}");
    }
}

#[test]
fn help_and_version_need_no_daemon() {
    let home = home();
    for args in [&["--help"][..], &["--version"], &["context", "--help"], &["context", "save", "--help"]] {
        let said = chorusctl(&home, args.iter().copied());
        assert!(said.status == 0 && !said.stdout.is_empty(), "{args:?}: {said:?}");
    }
    assert!(!home.path.exists(), "help made something");
}

#[test]
fn each_failure_has_the_status_of_its_kind() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for (status, args) in [
        (5, &["context", "save"][..]),
        (3, &["context", "restore", "latest"]),
        (3, &["session", "show", "deadbeef"]),
        (3, &["--agent", "nobody", "context", "show"]),
        (3, &["status", "nobody"]),
        (7, &["agent", "init", "a"]),
        (6, &["context", "clear"]),
        (6, &["agent", "destroy", "a"]),
    ] {
        if status == 6 {
            client.append("a", "one");
        }
        let said = chorusctl(&home, args.iter().copied());
        said.expect_failure(status);
        assert!(said.stderr.lines().count() <= 4, "{args:?}: {}", said.stderr);
    }
}

#[test]
fn a_damaged_session_is_a_failure() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let path = client.save("a", "one").file_path;
    fs::write(&path, "{").expect("damaged");
    chorusctl(&home, ["context", "restore", "latest"]).expect_failure_with_hint(1);
}

#[test]
fn texts_of_the_record_cannot_steer_the_terminal() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "\u{1b}]0;owned\u{7}\u{1b}[2J red \u{9b}31m\u{202e}");
    client.save("a", "\u{1b}[31mdescription");
    for args in [&["context", "show"][..], &["context", "history"], &["session", "show", "latest"], &["status"]] {
        let said = chorusctl(&home, args.iter().copied()).expect_success();
        assert!(!said.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{args:?}: {said:?}");
    }
}
