//! Which agent a command means.

use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{Daemon, Home};

use crate::home;

/// The agent that `context show` means, with `env` and in `folder`.
fn meant(home: &Home, env: Option<&str>, folder: &std::path::Path) -> String {
    let mut command = home.command(home.bins.chorusctl);
    command.args(["--json", "context", "show"]).current_dir(folder);
    if let Some(name) = env {
        command.env("CHORUS_AGENT", name);
    }
    run_command(command, b"").expect_json()["agent_name"].as_str().expect("a name").to_owned()
}

#[test]
fn the_most_particular_word_wins() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let none = chorusctl(&home, ["context", "show"]);
    none.expect_failure_with_hint(3);
    chorusctl(&home, ["agent", "init", "one"]).expect_success();
    assert_eq!(meant(&home, None, &home.user_home), "one", "the only one there is");
    chorusctl(&home, ["agent", "init", "two"]).expect_success();
    chorusctl(&home, ["agent", "init", "three"]).expect_success();
    let said = chorusctl(&home, ["context", "show"]);
    let said = said.expect_failure(3);
    assert!(["one", "two", "three"].iter().all(|name| said.contains(name)), "a list of them: {said}");
    chorusctl(&home, ["agent", "use", "two"]).expect_success();
    assert_eq!(meant(&home, None, &home.user_home), "two", "the chosen one");
    let inside = home.agent_dir("three").join("workspace");
    assert_eq!(meant(&home, None, &inside), "three", "the one whose directory this is");
    assert_eq!(meant(&home, Some("one"), &inside), "one", "the one of the environment");
    let mut command = home.command(home.bins.chorusctl);
    command.args(["--json", "--agent", "two", "context", "show"]).env("CHORUS_AGENT", "one").current_dir(&inside);
    assert_eq!(run_command(command, b"").expect_json()["agent_name"], "two", "the one of the flag");
}

#[test]
fn an_agent_that_is_not_there_is_answered_with_the_nearest_name() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "data-team"]).expect_success();
    let said = chorusctl(&home, ["--agent", "dta-team", "context", "show"]);
    assert!(said.expect_failure_with_hint(3).contains("data-team"), "{said:?}");
    chorusctl(&home, ["agent", "show", "nobody"]).expect_failure(3);
    chorusctl(&home, ["agent", "use", "nobody"]).expect_failure(3);
}
