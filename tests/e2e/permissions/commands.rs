//! `permissions list|show|check`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::{Check, CheckParams, Decision, List, ListParams, Rule, Show, ShowParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn presets_are_listed_and_shown() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let profiles = client.call::<List>(&ListParams {}).expect("profiles").profiles;
    let names: Vec<&str> = profiles.iter().map(|profile| &*profile.name).collect();
    assert_eq!(names, ["open", "standard", "locked"]);
    assert_eq!((&*profiles[1].agents, profiles[1].preset), (&["a".to_owned()][..], true));
    let shown = client.call::<Show>(&ShowParams { name: "locked".into() }).expect("a profile");
    assert_eq!(shown.profile["default"], "deny");
    assert_eq!(shown.profile["allow"].as_array().map(Vec::len), Some(3));
    for name in ["lockd", "a"] {
        assert_eq!(expect_error_kind(client.call::<Show>(&ShowParams { name: name.into() })), ErrorKind::NotFound);
    }
}

#[test]
fn a_check_says_what_would_happen_and_why() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut check = |action: &str| client.call::<Check>(&CheckParams { agent: None, action: action.into() });
    for (action, wanted) in [
        ("tool:view:src/a", Decision::Allow),
        ("tool:git:commit", Decision::Allow),
        ("tool:git:branch x", Decision::Allow),
        ("tool:git:push origin x", Decision::Ask),
        ("tool:self_edit:docs:a.md", Decision::Allow),
        ("tool:self_edit:system_prompt", Decision::Ask),
        ("tool:bash:ls; pwd", Decision::Ask),
        ("tool:unheard_of:x", Decision::Deny),
    ] {
        assert_eq!(check(action).expect("a verdict").decision, wanted, "{action}");
    }
    let verdict = check("tool:bash:ls; pwd").expect("a verdict");
    assert_eq!(verdict.parts.len(), 2);
    assert!(matches!(verdict.rule, Rule::Pattern { list: Decision::Ask, index: 0, .. }));
    for wrong in ["", "ls", "tool:", "tool::x", "bash:ls"] {
        assert_eq!(expect_error_kind(check(wrong)), ErrorKind::InvalidParams, "{wrong:?}");
    }
}

#[test]
fn the_command_line_shows_them_and_ends_well_whatever_the_verdict() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let listed = chorusctl(&home, ["permissions"]).expect_success();
    assert!(listed.starts_with("PROFILE") && listed.contains("standard"), "{}", listed);
    let shown = chorusctl(&home, ["permissions", "show", "standard"]).expect_success();
    assert!(shown.contains("ask[0]") && shown.contains("tool:bash:.*"), "{}", shown);
    let denied = chorusctl(&home, ["permissions", "check", "a", "tool:unheard_of:x"]).expect_success();
    assert_eq!(denied, "deny  default (no rule matches)\n");
    let asked = chorusctl(&home, ["permissions", "check", "a", "tool:bash:ls && pwd"]).expect_success();
    assert_eq!(
        asked,
        "ask  ask[0] tool:bash:.*\n  ask    tool:bash:ls\n         ask[0] tool:bash:.*\n  ask    tool:bash:pwd\n         \
         ask[0] tool:bash:.*\n"
    );
}

#[test]
fn a_check_cleans_paths_as_the_tools_do() {
    let home = home();
    let config = "[permissions.fenced]\ndeny = [\"tool:(view|create_file):secrets/.*\"]\nallow = [\"tool:.*\"]\n";
    let daemon = Daemon::start_with(&home, config);
    let mut client = daemon.client();
    client.init("a");
    chorusctl(&home, ["agent", "config", "a", "permissions", "fenced"]).expect_success();
    let workspace = home.path.join("agents/a/workspace");
    assert!(workspace.is_dir());
    let workspace = workspace.display();
    let mut check = |action: &str| {
        let verdict = client.call::<Check>(&CheckParams { agent: None, action: action.into() });
        verdict.expect("a verdict").decision
    };
    for path in ["secrets/x", "./secrets/x", "a/../secrets//x", &format!("{workspace}/secrets/x")] {
        for action in ["tool:view:", "tool:create_file:", "tool:bash:cat < ", "tool:bash:cat y > "] {
            assert_eq!(check(&format!("{action}{path}")), Decision::Deny, "{action}{path}");
        }
    }
    for path in ["a/x", "secrets/../a/x", "./x"] {
        assert_eq!(check(&format!("tool:view:{path}")), Decision::Allow, "{path}");
    }
}

#[test]
fn a_check_says_which_rule_does_not_name_the_program() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[permissions.free]\nallow = [\"tool:view:.*\", \"tool:.*\"]\n");
    daemon.client().init("a");
    chorusctl(&home, ["agent", "config", "a", "permissions", "free"]).expect_success();
    let said = |action: &str| chorusctl(&home, ["permissions", "check", "a", action]).expect_success();
    let asked = said("tool:bash:cargo test");
    let why =
        "allow[1] matches any program, and `cargo` may run other programs: name the program in a rule to allow it";
    assert!(asked.starts_with(&format!("ask  needs approval because {why}\n")), "{asked}");
    let asked = said("tool:bash:gcc @options");
    assert!(asked.contains("(`@options`), and no rule names that"), "{asked}");
    let asked = said("tool:bash:sort -T x y");
    assert!(asked.contains("`sort -T` may run other programs"), "{asked}");
}
