//! P15: new sessions are counted on the disk, and there are no more of them than that in a day.

use std::time::Duration;

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::{DEADLINE, Daemon, Home, InProcessDaemon, ManualClock, skip, wait_until};
use jiff::Timestamp;

use super::super::catalog;
use super::{SOON, becomes, info, rig};
use crate::system_calls::all;

/// New sessions in a day.
const MOST: usize = 50;
const HOUR: i64 = 3_600;

/// As if there had been so many new sessions an hour before `now`.
fn spent(home: &Home, count: usize, now: Timestamp) {
    let at = i64::try_from(now.as_nanosecond()).expect("a time of ours") - HOUR * 1_000_000_000;
    for number in 0..count {
        catalog::change(home, &format!("INSERT INTO discord_identifies (at) VALUES ({})", at + number as i64));
    }
}

/// A daemon that has been there has made the tables.
fn made(discord: &FakeDiscord, home: &Home, more: &str) {
    home.write_config("");
    Daemon::start(home).terminate();
    home.write_config(&(discord.config_toml() + more));
}

#[test]
fn a_crash_loop_begins_no_more_sessions_than_the_budget_has_and_then_waits() {
    let (starts, spent_before) = if all() { (500, 0) } else { (12, MOST - 2) };
    let (discord, home) = rig(SOON);
    made(&discord, &home, SOON);
    spent(&home, spent_before, Timestamp::now());
    let mut paused = 0;
    for start in 0..starts {
        let before = discord.identifies();
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let waiting = wait_until("a session or a pause", DEADLINE, || {
            let now = info(&mut client);
            let waiting = now.state == Some(DiscordState::Waiting)
                && now.until.is_some_and(|at| at.duration_since(Timestamp::now()).as_hours() > 10);
            (waiting || discord.identifies() > before).then_some(waiting)
        });
        paused += usize::from(waiting);
        client.init(&format!("agent-{start}"));
        client.append(&format!("agent-{start}"), "the socket works");
        daemon.kill9();
        discord.wait_disconnected();
        discord.forget_sessions();
    }
    let begun = spent_before + discord.identifies() + discord.identifies_refused();
    assert_eq!(begun, MOST, "{} were refused", discord.identifies_refused());
    assert_eq!(paused, starts - (MOST - spent_before));
    let daemon = Daemon::start(&home);
    let why = becomes(&daemon, DiscordState::Waiting).why.expect("a reason");
    assert!(why.contains("too many"), "{why}");
    let status = chorusctl(&home, ["status"]).expect_success();
    assert!(status.contains("Discord not connected: too many connections to Discord today; retry in"), "{status}");
    let doctor = chorusctl(&home, ["doctor"]).stdout;
    assert!(doctor.contains("0 of 50 session starts left within 24 hours"), "{doctor}");
}

#[test]
fn a_day_after_the_oldest_there_is_one_more() {
    let (discord, home) = rig(SOON);
    made(&discord, &home, SOON);
    let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
    if home.database_url().is_some() {
        return skip("a daemon in the test's own process has no PostgreSQL");
    }
    spent(&home, MOST, now);
    let hands = ManualClock::new(now);
    let inside = InProcessDaemon::start(&home, &hands);
    let mut client = inside.client();
    let waiting = wait_until("a pause", DEADLINE, || {
        Some(info(&mut client)).filter(|info| info.state == Some(DiscordState::Waiting))
    });
    let until = now + jiff::SignedDuration::from_hours(23);
    assert_eq!(waiting.until, Some(until));
    hands.advance(Duration::from_secs(22 * 3_600));
    assert_eq!(info(&mut client).state, Some(DiscordState::Waiting));
    assert_eq!(discord.identifies(), 0);
    hands.advance(Duration::from_secs(3_601));
    discord.wait_connected();
    assert_eq!(discord.identifies(), 1);
}

#[test]
fn where_discord_takes_no_new_session_none_is_begun() {
    let (discord, home) = rig(SOON);
    discord.set_session_start_limit(0, Duration::from_secs(7_200));
    let daemon = Daemon::start(&home);
    let until = becomes(&daemon, DiscordState::Waiting).until.expect("a time");
    let minutes = until.duration_since(Timestamp::now()).as_mins();
    assert!((118..=120).contains(&minutes), "{minutes}");
    assert_eq!((discord.identifies(), discord.identifies_refused()), (0, 0));
}
