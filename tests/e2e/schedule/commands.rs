//! `chorusctl schedule`: what it prints, and what it refuses.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{Daemon, Home, InteractiveCommand};

use crate::home;
use crate::tools::self_edit::start_fixture;

/// A home with the agent `a`.
fn start() -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    (home, daemon)
}

#[test]
fn schedules_are_added_listed_and_removed() {
    let (home, _daemon) = start();
    let ctl = |args: &[&str]| chorusctl(&home, [&["schedule"], args].concat());
    let cron = ["--cron", "0 7 * * mon-fri", "--tz", "Europe/Berlin"];
    let tried = ctl(&[&["add", "standup", "Summarize.", "--dry-run"], &cron[..]].concat()).expect_success();
    assert!(tried.starts_with("would schedule standup for a: 0 7 * * mon-fri (Europe/Berlin)\n"), "{tried}");
    assert_eq!(
        tried.lines().filter(|line| line.ends_with(" 07:00 CET") || line.ends_with(" 07:00 CEST")).count(),
        3,
        "{tried}"
    );
    assert_eq!(ctl(&["list", "--json"]).expect_json()["schedules"].as_array().map(Vec::len), Some(0));
    let added = ctl(&[&["add", "standup", "Summarize."], &cron[..]].concat()).expect_success();
    assert_eq!(added, tried.replace("would schedule", "scheduled"));
    ctl(&["add", "inbox", "Look.", "--every", "90m", "--missed", "skip"]).expect_success();
    ctl(&["add", "remind", "--in", "20m", "-"]).expect_failure(2);
    let listed = ctl(&["list"]).expect_success();
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "AGENT", "WHEN", "NEXT", "STATE"], "{listed}");
    assert_eq!((rows[1][0], rows[1][2], rows[1][3]), ("inbox", "every", "1h30m"), "{listed}");
    assert_eq!((rows[2][0], rows[2].last()), ("standup", Some(&"active")), "{listed}");
    assert_eq!(ctl(&["pause", "standup"]).expect_success(), "paused standup\n");
    assert_eq!(ctl(&["pause", "standup"]).expect_success(), "standup is already paused\n");
    assert!(ctl(&["resume", "standup"]).expect_success().starts_with("resumed standup; next: "));
    assert_eq!(ctl(&["remove", "standup"]).expect_success(), "removed standup (0 7 * * mon-fri)\n");
    assert!(!ctl(&[]).expect_success().contains("standup"));
}

#[test]
fn a_mistake_is_named_with_its_place_before_anything_is_written() {
    let (home, _daemon) = start();
    let add = |args: &[&str]| chorusctl(&home, [&["schedule", "add", "x", "m"], args].concat());
    for (args, said) in [
        (&["--cron", "0 25 * * *"][..], "character 3: value must be in range 0 to 23; found 25"),
        (&["--cron", "0 7 * *"], "character 8: five fields are needed: the day of the week is missing"),
        (&["--cron", "0 7 30 2 *"], "character 5: no year has such a day"),
        (&["--cron", "0 7 * * *", "--tz", "Europe/Atlantis"], "unknown time zone \"Europe/Atlantis\""),
        (&["--every", "59s"], "the interval must be from 1 minute to 10 years"),
        (&["--every", "20000d"], "the interval must be from 1 minute to 10 years"),
    ] {
        let failed = add(args);
        assert!(failed.expect_failure_with_hint(2).contains(said), "{failed:?}");
    }
    for args in [&[][..], &["--every", "4h", "--in", "20m"], &["--every", "often"], &["--every", "4h", "--tz", "UTC"]] {
        add(args).expect_failure(2);
    }
    let named = |name: &str| chorusctl(&home, ["schedule", "add", name, "m", "--every", "4h"]);
    assert!(named("A b").expect_failure(2).contains("not a valid schedule name"));
    named("x").expect_success();
    assert!(named("x").expect_failure_with_hint(7).contains("agent a already has a schedule x"));
    let unknown = chorusctl(&home, ["schedule", "remove", "y"]);
    assert!(unknown.expect_failure(3).contains("no schedule \"y\""), "{unknown:?}");
    for number in 0..99 {
        named(&format!("n{number}")).expect_success();
    }
    assert!(named("more").expect_failure_with_hint(6).contains("already has 100 schedules"));
}

#[test]
fn without_a_model_nothing_is_promised_and_no_conversation_stays() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let added = chorusctl(&home, ["schedule", "add", "look", "Look.", "--cron", "0 7 * * *", "--tz", "UTC"]);
    assert!(added.stderr.contains("warning: its runs would fail now: agent a has no model\nhint: "), "{added:?}");
    let added = added.expect_success();
    assert!(added.starts_with("scheduled look for a: 0 7 * * * (UTC)\n"), "{added}");
    assert_eq!(added.lines().filter(|line| line.ends_with(" 07:00 UTC")).count(), 3, "{added}");
    let run = chorusctl(&home, ["schedule", "run", "look"]);
    assert!(run.stdout.is_empty() && run.stderr.contains("agent a has no model"), "{run:?}");
    run.expect_failure_with_hint(1);
    // One that is due fails, too.
    chorusctl(&home, ["schedule", "add", "soon", "Look.", "--in", "1s"]).expect_success();
    let failed = super::ran(&mut client, "soon", 1);
    assert!(failed.runs[0].error.as_ref().is_some_and(|error| error.contains("has no model")), "{failed:?}");
    let conversations = chorusctl(&home, ["conversations"]).expect_success();
    assert!(!conversations.contains("schedule-"), "{conversations}");
}

#[test]
fn removing_a_schedule_closes_its_empty_conversation() {
    let fixture = start_fixture("open");
    let (home, mut client) = (&fixture.home, fixture.client());
    let ctl = |args: &[&str]| chorusctl(home, args).expect_success();
    fixture.models().anthropic().set_fallback(Response::text(["Done."]));
    for name in ["one", "two"] {
        ctl(&["schedule", "add", name, "Look.", "--every", "4h"]);
        ctl(&["schedule", "run", name]);
        super::ran(&mut client, name, 1);
    }
    ctl(&["-C", "schedule-one", "context", "clear", "--yes"]);
    ctl(&["schedule", "remove", "one"]);
    ctl(&["schedule", "remove", "two"]);
    let conversations = ctl(&["conversations"]);
    assert!(!conversations.contains("schedule-one") && conversations.contains("schedule-two"), "{conversations}");
}

#[test]
fn the_rule_is_whole_on_a_terminal_of_80_columns() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("an-agent-with-a-name");
    let rule = ["--cron", "*/15 8-17 * * mon-fri", "--tz", "UTC"];
    chorusctl(&home, [&["schedule", "add", "standup", "Look."], &rule[..]].concat()).expect_success();
    let mut command = home.command(home.bins.chorusctl);
    command.args(["schedule", "list"]);
    let mut listing = InteractiveCommand::on_terminal_of(&command, 80, 24);
    let (_, text, _) = listing.wait_for_exit();
    assert!(text.contains("*/15 8-17 * * mon-fri  ") && text.contains(" UTC  active"), "{text}");
}
