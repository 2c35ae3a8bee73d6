//! A `chorusctl` and a daemon of different versions: the one that is older is named with what to do, in both directions.

use chorus_tests::Home;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::start_fake_daemon_with;
use serde_json::json;

use crate::home;

/// A daemon of this version that knows no method but `hello`.
fn start_daemon_of(home: &Home, version: &'static str) {
    start_fake_daemon_with(home, move |mut asked| {
        match &*asked.method {
        "hello" => asked.send_result(
            json!({"protocol": 1, "server": "chorusd", "version": version, "pid": 4711, "home": "/home/mara/.chorus-agents"}),
        ),
        _ => asked.send_unknown_method(),
    }
    });
}

#[test]
fn a_daemon_that_an_update_left_behind_is_to_be_restarted() {
    let home = home();
    start_daemon_of(&home, "0.0.9");
    let due = "error: unknown method \"schedule.list\"\nhint: the daemon is still chorusd 0.0.9, chorusctl is 0.1.0; restart the daemon: chorusctl daemon restart\n";
    assert_eq!(chorusctl(&home, ["schedule", "list"]).expect_failure_with_hint(1), due);
    let started = chorusctl(&home, ["daemon", "start"]);
    assert!(started.stdout.contains("already running: chorusd 0.0.9"), "{started:?}");
    assert!(started.stderr.ends_with("restart the daemon: chorusctl daemon restart\n"), "{started:?}");
}

#[test]
fn a_parameter_that_the_daemon_does_not_know_is_explained_as_well() {
    let home = home();
    start_fake_daemon_with(&home, |mut asked| match &*asked.method {
        "hello" => asked.disconnect(),
        _ => asked.send_error(
            "invalid_params",
            "invalid parameters: unknown field `wait`, expected one of `agent`, `query`",
            "see the parameters in docs/PROTOCOL.md",
        ),
    });
    let due = "error: the daemon does not know the parameter `wait`\nhint: the daemon may be an older version; restart it: chorusctl daemon restart\n";
    assert_eq!(chorusctl(&home, ["search", "redis", "--wait"]).expect_failure_with_hint(2), due);
}

#[test]
fn a_chorusctl_that_is_older_than_the_daemon_is_to_be_updated() {
    let home = home();
    start_daemon_of(&home, "12.0.0");
    let due = "error: unknown method \"schedule.list\"\nhint: the daemon is chorusd 12.0.0, chorusctl only 0.1.0; update chorusctl\n";
    assert_eq!(chorusctl(&home, ["schedule", "list"]).expect_failure_with_hint(1), due);
    let json = chorusctl(&home, ["schedule", "list", "--json"]);
    assert!(json.expect_failure_with_hint(1).contains("update chorusctl"), "{json:?}");
}
