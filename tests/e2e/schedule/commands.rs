//! `chorusctl schedule`: what it prints, and what it refuses.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use crate::home;

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
    assert!(tried.starts_with("would schedule standup for a: 0 7 * * mon-fri\n"), "{tried}");
    assert_eq!(tried.lines().filter(|line| line.ends_with(" 07:00 (Europe/Berlin)")).count(), 3, "{tried}");
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
