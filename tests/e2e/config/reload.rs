//! A running daemon takes changes of config.toml: by command and by SIGHUP, and what it keeps if the file has an error.

use chorus_proto::EventType;
use chorus_proto::methods::events::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::process::signal;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::home;
use crate::settings::one;

/// The data of the events about reloads.
fn reloads(daemon: &Daemon) -> Vec<Value> {
    let events = daemon.client().call::<List>(&ListParams::default()).expect("events").events;
    events.into_iter().filter(|event| event.kind == EventType::ConfigReloaded).map(|event| event.data).collect()
}

/// A daemon without a controlling terminal, as a service manager starts it.
fn start_without_terminal(home: &Home, config: &str) -> Daemon {
    home.write_config(config);
    let mut command = home.command("setsid");
    command.arg(home.bins.chorusd);
    Daemon::start_command(home, command)
}

#[test]
fn a_reload_applies_what_it_can_and_names_the_rest() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[permissions.careful]\nallow = [\"tool:view:.*\"]\n");
    let mut client = daemon.client();
    client.init("a");
    chorusctl(&home, ["agent", "config", "a", "permissions", "careful"]).expect_success();
    let may = |action: &str| {
        chorusctl(&home, ["permissions", "check", "a", action, "--json"]).expect_json()["decision"].clone()
    };
    assert_eq!(may("tool:create_file:x"), "deny");
    home.write_config(
        "max_connections = 64\napproval_timeout = \"7m\"\n[permissions.careful]\nallow = [\"tool:(view|create_file):.*\"]\n",
    );
    let doctor = || chorusctl(&home, ["doctor"]).stdout;
    assert!(doctor().contains("config.toml was changed: approval_timeout"), "{}", doctor());
    let said = chorusctl(&home, ["config", "reload"]);
    assert!(said.stdout.contains("2 keys changed: approval_timeout, permissions.careful"), "{said:?}");
    assert!(said.stderr.contains("max_connections applies after a restart: chorusctl daemon restart"), "{said:?}");
    assert_eq!(may("tool:create_file:x"), "allow", "the profile of an agent at work");
    assert_eq!(one(&mut client, "approval_timeout").value, "7m");
    assert_eq!(one(&mut client, "max_connections").value, 1024);
    assert!(doctor().contains("changes that need a restart: max_connections"), "{}", doctor());
    let said = chorusctl(&home, ["config", "reload", "--json"]).expect_json();
    assert_eq!(
        (said["changed"].as_array().map(Vec::len), said["restart"][0].as_str()),
        (Some(0), Some("max_connections"))
    );
    let told = wait_until("the events", DEADLINE, || Some(reloads(&daemon)).filter(|told| told.len() == 2));
    assert_eq!(told[0]["changed"], serde_json::json!(["approval_timeout", "permissions.careful"]));
    let events = chorusctl(&home, ["events"]).expect_success();
    assert!(events.contains("the configuration was reloaded"), "{events}");
}

#[test]
fn a_file_with_an_error_changes_nothing_and_is_said() {
    let home = home();
    let daemon = Daemon::start_with(&home, "approval_timeout = \"7m\"\n");
    home.write_config("approval_timeout = \"9m\"\n\n[defaults]\nidel_timeout = \"1m\"\n");
    let said = chorusctl(&home, ["config", "reload"]);
    let stderr = said.expect_failure_with_hint(2);
    for part in
        ["line 4, column 1: unknown key `defaults.idel_timeout`", "keeps the configuration", "`defaults.idle_timeout`?"]
    {
        assert!(stderr.contains(part), "no {part} in {stderr}");
    }
    assert_eq!(one(&mut daemon.client(), "approval_timeout").value, "7m");
    assert!(daemon.read_log().contains("the configuration was not reloaded"), "{}", daemon.read_log());
    let doctor = chorusctl(&home, ["doctor"]);
    assert!(doctor.stdout.contains("the next start would fail: ") && doctor.status != 0, "{doctor:?}");
    // A key elsewhere cannot be set, and the message names the line that is wrong.
    let said = chorusctl(&home, ["config", "set", "approval_timeout", "8m"]);
    assert!(said.expect_failure_with_hint(2).contains("line 4, column 1"), "{said:?}");
    // But the key that is wrong can be removed.
    chorusctl(&home, ["config", "unset", "defaults.idel_timeout"]).expect_success();
    assert_eq!(one(&mut daemon.client(), "approval_timeout").value, "9m");
}

#[test]
fn sighup_reads_the_file_and_a_bad_one_leaves_the_daemon_as_it_is() {
    let home = home();
    let mut daemon = start_without_terminal(&home, "approval_timeout = \"7m\"\n");
    home.write_config("approval_timeout = \"8m\"\n");
    signal(daemon.pid, Signal::HUP);
    wait_until("the new value", DEADLINE, || {
        (one(&mut daemon.client(), "approval_timeout").value == "8m").then_some(())
    });
    home.write_config("approval_timeout = \"soon\"\n");
    signal(daemon.pid, Signal::HUP);
    let told = wait_until("the second event", DEADLINE, || reloads(&daemon).into_iter().nth(1));
    let error = told["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("line 1, column 1: `approval_timeout`") && error.contains("keeps the configuration"),
        "{error}"
    );
    assert!(daemon.read_log().contains("the configuration was not reloaded"), "{}", daemon.read_log());
    assert_eq!(one(&mut daemon.client(), "approval_timeout").value, "8m");
    home.write_config("approval_timeout = \"9m\"\n");
    signal(daemon.pid, Signal::HUP);
    wait_until("the last value", DEADLINE, || {
        (one(&mut daemon.client(), "approval_timeout").value == "9m").then_some(())
    });
    daemon.assert_alive();
    assert!(daemon.terminate().success());
}

#[test]
fn a_daemon_in_a_terminal_stops_when_that_is_closed() {
    let home = home();
    home.create();
    let mut command = home.command(home.bins.chorusd);
    command.current_dir(&home.path);
    let mut daemon = InteractiveCommand::on_terminal(&command);
    daemon.stdout.wait_for("ready");
    chorusctl(&home, ["context", "append", "kept"]).expect_success();
    daemon.signal(Signal::HUP);
    let (status, ..) = daemon.wait_for_exit();
    assert!(status.success(), "{status:?}");
    assert!(daemon.stdout.text().contains("stopping"), "{}", daemon.stdout.text());
}

#[test]
fn a_reload_needs_a_daemon_and_starts_none() {
    let home = home();
    let said = chorusctl(&home, ["config", "reload"]);
    assert!(said.expect_failure_with_hint(4).contains("no daemon is running"), "{said:?}");
    assert_eq!(home.running_pid(), None);
}
