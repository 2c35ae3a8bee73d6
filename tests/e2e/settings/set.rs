//! `settings set`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::settings::{From, Set, SetParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{Daemon, Home};
use jiff::SignedDuration;

use super::{one, set};
use crate::approvals::{audit, in_catalog};
use crate::home;

/// A daemon with a model, the agent `a` that says nothing itself, and `own` that does.
fn rig() -> (ModelServer, Home, Daemon) {
    let (server, home) = (ModelServer::start(), home());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    client.init("own");
    for (key, value) in [("model", "local/small"), ("idle_timeout", "7m"), ("permissions", "open")] {
        let params = ConfigParams { name: "own".into(), key: Some(key.into()), value: Some(value.into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    // The template may say what the defaults are.
    for key in ["model", "idle_timeout", "permissions"] {
        let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some("".into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    (server, home, daemon)
}

/// How long after the last activity the context of `a` is put away.
fn idle(home: &Daemon) -> SignedDuration {
    let context = home.client().agent_status("a").context.expect("a context");
    context.idle_deadline_at.expect("a deadline").duration_since(context.last_activity_at)
}

#[test]
fn what_agents_do_not_say_themselves_changes_at_once_and_for_good() {
    let (_server, home, daemon) = rig();
    let mut client = daemon.client();
    client.append("a", "one");
    assert_eq!(idle(&daemon), SignedDuration::from_mins(30));
    let done = set(&mut client, "idle_timeout", "45m");
    assert_eq!((done.old, done.overridden_by, done.setting.from), (None, None, From::Settings));
    assert_eq!((done.setting.key.as_str(), done.setting.value), ("defaults.idle_timeout", "45m".into()));
    assert_eq!(idle(&daemon).as_mins(), 45, "the timer that runs is set anew");
    set(&mut client, "defaults.permissions", "locked");
    set(&mut client, "default_model", "anthropic/claude-other");
    let of = |client: &mut chorus_proto::Client, name: &str| {
        let agent = client.agent_status(name);
        (agent.model, agent.permissions)
    };
    assert_eq!(of(&mut client, "a"), (Some("anthropic/claude-other".into()), "locked".into()));
    assert_eq!(of(&mut client, "own"), (Some("local/small".into()), "open".into()));
    let shown = chorusctl(&home, ["agent", "show", "a"]).expect_success();
    assert!(shown.contains("anthropic/claude-other") && shown.contains("locked"), "{shown}");
    let may = chorusctl(&home, ["permissions", "check", "a", "tool:create_file:x", "--json"]).expect_json();
    assert_eq!(may["decision"], "deny");
    // A new agent has them, too, and so has the next daemon.
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(of(&mut client, "a"), (Some("anthropic/claude-other".into()), "locked".into()));
    assert_eq!(one(&mut client, "defaults.idle_timeout").value, "45m");
    client.append("a", "two");
    assert_eq!(idle(&daemon).as_mins(), 45);
    // An empty value takes them back.
    let done = set(&mut client, "permissions", "");
    assert_eq!((done.old.as_deref(), done.setting.from), (Some("locked"), From::Default));
    set(&mut client, "idle_timeout", "");
    set(&mut client, "default_model", "");
    assert_eq!(of(&mut client, "a"), (Some("anthropic/claude-test".into()), "standard".into()));
    assert_eq!(idle(&daemon).as_mins(), 30);
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let (_server, home, daemon) = rig();
    let mut client = daemon.client();
    for (key, value, hint) in [
        ("idle_timout", "5m", "did you mean `idle_timeout`?"),
        ("idle_timeout", "soon", "hint: "),
        ("permissions", "lokced", "did you mean `locked`?"),
        ("max_frame", "1MiB", "set it in config.toml and restart"),
        ("colour", "red", "default_model, permissions, idle_timeout"),
    ] {
        let said = chorusctl(&home, ["settings", "set", key, value]);
        assert!(said.status != 0 && said.stderr.contains("error: ") && said.stderr.contains(hint), "{}", said.stderr);
    }
    let params = SetParams { key: "idle_timeout".into(), value: serde_json::json!([5]), command: None };
    assert_eq!(expect_error_kind(client.call::<Set>(&params)), ErrorKind::InvalidParams);
    assert_eq!(one(&mut client, "defaults.idle_timeout").from, From::Default);
    assert_eq!(client.agent_status("a").permissions, "standard");
}

#[test]
fn the_environment_goes_before_a_setting_and_the_answer_says_so() {
    let home = home();
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_IDLE_TIMEOUT", "20m");
    let daemon = Daemon::start_command(&home, command);
    let done = set(&mut daemon.client(), "idle_timeout", "45m");
    assert_eq!(done.overridden_by.as_deref(), Some("CHORUS_IDLE_TIMEOUT"));
    assert_eq!((done.setting.value, done.setting.from), ("20m".into(), From::Environment));
    let said = chorusctl(&home, ["settings", "set", "idle_timeout", "50m"]);
    assert!(said.stderr.contains("CHORUS_IDLE_TIMEOUT") && said.stdout.contains("20m"), "{said:?}");
    // Without it the setting holds.
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(one(&mut daemon.client(), "defaults.idle_timeout").value, "50m");
}

#[test]
fn a_setting_goes_before_the_file_and_one_that_fits_no_more_is_left_out() {
    let home = home();
    let config = "[defaults]\npermissions = \"locked\"\n";
    let careful = "[permissions.careful]\nallow = [\"tool:view:.*\"]\n";
    let daemon = Daemon::start_with(&home, &format!("{config}{careful}"));
    let mut client = daemon.client();
    assert_eq!(one(&mut client, "defaults.permissions").from, From::File);
    set(&mut client, "permissions", "careful");
    assert_eq!(one(&mut client, "defaults.permissions").value, "careful");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start_with(&home, config);
    let setting = one(&mut daemon.client(), "defaults.permissions");
    assert_eq!((setting.value, setting.from), ("locked".into(), From::File));
    assert!(daemon.read_log().contains("ignoring an invalid setting"), "{}", daemon.read_log());
}

#[test]
fn one_that_cannot_be_set_is_no_row_of_the_audit_log() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    set(&mut client, "idle_timeout", "45m");
    in_catalog(
        &home.path,
        "CREATE TRIGGER no_more BEFORE UPDATE ON settings BEGIN SELECT RAISE(ABORT, 'no'); END;
         CREATE TRIGGER none_less BEFORE DELETE ON settings BEGIN SELECT RAISE(ABORT, 'no'); END;",
    );
    for value in ["50m", ""] {
        chorusctl(&home, ["settings", "set", "idle_timeout", value]).expect_failure_with_hint(1);
    }
    let rows = audit(&mut client);
    let told: Vec<_> = rows.iter().map(|row| (&*row.decision, row.new.as_deref())).collect();
    assert_eq!(told, [("changed", Some("45m"))]);
    assert_eq!(one(&mut client, "defaults.idle_timeout").value, "45m");
}
