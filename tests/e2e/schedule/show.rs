//! `schedule show`, and what points at it.

use chorus_proto::methods::schedule::{Run, RunParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::find;
use crate::home;
use crate::tools::self_edit::start_fixture;

#[test]
fn the_reason_of_a_failed_run_is_shown_and_the_list_points_at_it() {
    let fixture = start_fixture("open");
    let home = &fixture.home;
    let ctl = |args: &[&str]| chorusctl(home, [&["schedule"], args].concat());
    ctl(&["add", "look", "Look.", "--cron", "0 7 * * *", "--tz", "Asia/Tokyo"]).expect_success();
    let before = ctl(&["show", "look"]).expect_success();
    assert!(before.starts_with("look  active\n") && before.contains("\nno runs yet\n"), "{before}");
    assert_eq!(before.lines().filter(|line| line.ends_with(" 07:00 JST")).count(), 3, "{before}");
    for (field, value) in [("message", "Look."), ("when", "0 7 * * *"), ("time zone", "Asia/Tokyo")] {
        assert!(before.lines().any(|line| line.trim().starts_with(field) && line.ends_with(value)), "{before}");
    }
    fixture.models().anthropic().set_fallback(Response::error(400, "the model has no such feature"));
    let run = ctl(&["run", "look"]).expect_success();
    assert!(run.contains("\n  its reply: chorusctl -C schedule-look show\n"), "{run}");
    assert!(run.ends_with("\n  how it ended: chorusctl schedule show look\n"), "{run}");
    let mut client = fixture.client();
    wait_until("the run", DEADLINE, || find(&mut client, "look").runs.first().cloned());
    let after = ctl(&["show", "look"]).expect_success();
    assert!(after.contains("\nLAST RUNS\n") && after.contains("  failed   ended "), "{after}");
    assert!(after.contains("the model has no such feature"), "{after}");
    let listed = ctl(&["list"]);
    assert!(listed.stderr.contains("hint: see why a run failed: chorusctl schedule show look"), "{listed:?}");
    let all = ctl(&["list", "--all-agents"]);
    assert!(all.stderr.contains("chorusctl --agent a schedule show look"), "{all:?}");
    assert!(ctl(&["show", "loko"]).expect_failure_with_hint(3).contains("no schedule \"loko\""));
}

#[test]
fn next_is_in_the_zone_of_the_shell_which_it_names() {
    let fixture = start_fixture("open");
    let ctl = |args: &[&str]| {
        let mut command = fixture.home.command(fixture.home.bins.chorusctl);
        command.arg("schedule").args(args).env("TZ", "Europe/Berlin");
        run_command(command, b"")
    };
    ctl(&["add", "tokyo", "m", "--cron", "0 15 * * *", "--tz", "Asia/Tokyo"]).expect_success();
    ctl(&["add", "inbox", "m", "--every", "4h"]).expect_success();
    let listed = ctl(&["list"]).expect_success();
    let row = |name: &str| listed.lines().find(|line| line.starts_with(name)).expect("the row").to_owned();
    let tokyo = row("tokyo");
    assert!(tokyo.contains("0 15 * * * (Asia/Tokyo)"), "{listed}");
    assert!(tokyo.contains(" 07:00 CET") || tokyo.contains(" 08:00 CEST"), "{listed}");
    assert!(row("inbox").contains(" CET") || row("inbox").contains(" CEST"), "{listed}");
}

#[test]
fn a_mistake_in_an_expression_is_pointed_at() {
    let home = home();
    let daemon = chorus_tests::Daemon::start(&home);
    daemon.client().init("a");
    let failed = chorusctl(&home, ["schedule", "add", "x", "m", "--cron", "0 25 * * *"]);
    failed.expect_failure(2);
    assert!(failed.stderr.starts_with("  0 25 * * *\n    ^\nerror: "), "{failed:?}");
}

#[test]
fn other_words_for_remove_and_list_are_understood() {
    let home = home();
    for (words, meant) in [
        (["schedule", "rm", "x"], "schedule remove"),
        (["schedule", "delete", "x"], "schedule remove"),
        (["schedule", "ls", "x"], "schedule list"),
        (["memory", "rm", "x"], "memory remove"),
    ] {
        let failed = chorusctl(&home, words);
        failed.expect_failure_with_hint(2);
        assert!(failed.stderr.contains(&format!("`chorusctl {meant}`")), "{failed:?}");
    }
}

#[test]
fn schedules_of_an_agent_with_a_broken_configuration_are_listed() {
    let home = home();
    let daemon = chorus_tests::Daemon::start(&home);
    daemon.client().init("a");
    chorusctl(&home, ["schedule", "add", "look", "m", "--every", "4h"]).expect_success();
    daemon.kill9();
    let file = home.agent_dir("a").join("agent.json");
    std::fs::write(&file, "{").expect("a broken file");
    let daemon = chorus_tests::Daemon::start(&home);
    let listed = chorusctl(&home, ["schedule", "list", "--all-agents"]).expect_success();
    assert!(listed.lines().any(|line| line.starts_with("look  a ")), "{listed}");
    drop(daemon);
}

#[test]
fn an_imported_agent_has_its_schedules_paused() {
    let fixture = start_fixture("open");
    let home = &fixture.home;
    let ctl = |args: &[&str]| chorusctl(home, args);
    ctl(&["schedule", "add", "standup", "Sum up.", "--cron", "0 7 * * mon-fri", "--missed", "skip"]).expect_success();
    ctl(&["schedule", "add", "inbox", "Look.", "--every", "4h"]).expect_success();
    let archive = home.temp_dir().join("a.tar");
    let archive = archive.to_str().expect("UTF-8");
    ctl(&["agent", "export", "a", "--output", archive]).expect_success();
    let imported = ctl(&["agent", "import", archive, "--as", "b"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let said = "its 2 schedules are paused; to resume: chorusctl --agent b schedule resume inbox";
    assert!(imported.stderr.contains(said), "{imported:?}");
    let listed = ctl(&["--agent", "b", "schedule", "list", "--json"]).expect_json();
    let of = |name: &str| {
        let all = listed["schedules"].as_array().expect("schedules").iter();
        all.clone().find(|one| one["name"] == name).cloned().expect("the schedule")
    };
    let (standup, inbox) = (of("standup"), of("inbox"));
    assert_eq!(
        (&standup["state"], &standup["missed"], &standup["message"]),
        (&"paused".into(), &"skip".into(), &"Sum up.".into())
    );
    assert_eq!((&standup["cron"], &inbox["every_seconds"]), (&"0 7 * * mon-fri".into(), &14_400.into()));
    ctl(&["--agent", "b", "schedule", "resume", "inbox"]).expect_success();
    assert_eq!(ctl(&["--agent", "a", "schedule", "list", "--json"]).expect_json()["schedules"][0]["state"], "active");
}

#[test]
fn a_run_by_the_protocol_is_shown_too() {
    let fixture = start_fixture("open");
    fixture.models().anthropic().set_fallback(Response::text(["Done."]));
    chorusctl(&fixture.home, ["schedule", "add", "look", "m", "--every", "4h"]).expect_success();
    let mut client = fixture.client();
    client.call::<Run>(&RunParams { agent: Some("a".into()), name: "look".into() }).expect("schedule.run");
    wait_until("the run", DEADLINE, || find(&mut client, "look").runs.first().cloned());
    let shown = chorusctl(&fixture.home, ["schedule", "show", "look"]).expect_success();
    assert!(shown.contains("  ok       ended "), "{shown}");
}
