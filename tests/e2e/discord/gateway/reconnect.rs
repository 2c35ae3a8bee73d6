//! What ends a connection, and what comes after it.

use std::time::{Duration, Instant};

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use serde_json::json;

use super::{SOON, becomes, rig};

fn resumed(discord: &FakeDiscord, what: &str, count: usize) {
    wait_until(&format!("the session to be taken up after {what}"), DEADLINE, || {
        (discord.resumes() >= count).then_some(())
    });
    discord.wait_connected();
}

/// What leaves a connection, by its name.
type End = (&'static str, fn(&FakeDiscord));

#[test]
fn a_session_is_taken_up_after_whatever_leaves_it() {
    let (discord, home) = rig(SOON);
    let daemon = Daemon::start(&home);
    becomes(&daemon, DiscordState::Connected);
    let ends: [End; 8] = [
        ("op 7", |discord| discord.request_reconnect()),
        ("op 9, resumable", |discord| discord.invalidate_sessions(true)),
        ("a reset", |discord| discord.reset_connections()),
        ("1000", |discord| discord.close_connections(1000)),
        ("1001", |discord| discord.close_connections(1001)),
        ("4000", |discord| discord.close_connections(4000)),
        ("4008", |discord| discord.close_connections(4008)),
        ("an outage", |discord| {
            discord.refuse_connections();
            discord.wait_disconnected();
            discord.accept_connections();
        }),
    ];
    for (count, (what, end)) in ends.into_iter().enumerate() {
        end(&discord);
        resumed(&discord, what, count + 1);
        assert_eq!(becomes(&daemon, DiscordState::Connected).guilds, 1, "{what}");
    }
    assert_eq!((discord.identifies(), discord.identifies_refused()), (1, 0));
}

#[test]
fn a_session_that_is_over_is_followed_by_a_new_one() {
    let (discord, home) = rig(SOON);
    let daemon = Daemon::start(&home);
    discord.wait_connected();
    let ends: [End; 3] = [
        ("op 9", |discord| discord.invalidate_sessions(false)),
        ("4007", |discord| discord.close_connections(4007)),
        ("4009", |discord| discord.close_connections(4009)),
    ];
    for (count, (what, end)) in ends.into_iter().enumerate() {
        end(&discord);
        wait_until(what, DEADLINE, || (discord.identifies() == count + 2).then_some(()));
        discord.wait_connected();
        becomes(&daemon, DiscordState::Connected);
    }
    // They were far enough apart, and no session was asked for that was known to be over.
    assert_eq!((discord.identifies_refused(), discord.resumes()), (0, 0));
}

#[test]
fn tries_to_take_a_session_up_that_fail_wait_seconds_and_cost_no_new_session() {
    let (discord, home) = rig("");
    discord.set_identify_interval(Duration::ZERO);
    let daemon = Daemon::start(&home);
    discord.wait_connected();
    // New sessions that do not last make the waits before new ones grow: the next would be 4 s at least.
    for count in 2..=3 {
        discord.close_connections(4009);
        wait_until("a new session", DEADLINE, || (discord.identifies() == count).then_some(()));
        discord.wait_connected();
        becomes(&daemon, DiscordState::Connected);
    }
    discord.fail_resumes(2);
    let lost = Instant::now();
    discord.close_connections(4000);
    resumed(&discord, "two tries that failed", 1);
    let mut at = lost;
    let waits: Vec<f64> = discord
        .failed_resumes()
        .into_iter()
        .map(|failed| (failed - std::mem::replace(&mut at, failed)).as_secs_f64())
        .collect();
    // The waits are 1 to 2 s and 2 to 4 s, and the machine may be slow.
    assert!(waits.len() == 2 && waits[0] < 3.8 && waits[1] < 7.0, "{waits:?}");
    assert_eq!((discord.identifies(), discord.identifies_refused()), (3, 0));
    let doctor = chorusctl(&home, ["doctor"]).stdout;
    assert!(doctor.contains("47 of 50 session starts left within 24 hours"), "{doctor}");
    becomes(&daemon, DiscordState::Connected);
}

#[test]
fn a_connection_that_falls_silent_is_given_up() {
    let (discord, home) = rig(SOON);
    discord.set_heartbeat(Duration::from_millis(300));
    let _daemon = Daemon::start(&home);
    discord.wait_connected();
    discord.silence_connections();
    resumed(&discord, "silence", 1);
    assert_eq!(discord.identifies(), 1);
}

#[test]
fn events_that_cannot_be_read_are_in_the_log_without_what_they_say() {
    let (discord, home) = rig(SOON);
    let daemon = Daemon::start(&home);
    discord.wait_connected();
    discord.dispatch_event("MESSAGE_CREATE", &json!({"id": "7", "content": "between you and me"}));
    discord.dispatch_event("SOMETHING_NEW", &json!({"id": "7"}));
    wait_until("a line in the log", DEADLINE, || {
        let log = daemon.read_log();
        (log.contains("cannot parse") && log.contains("MESSAGE_CREATE")).then_some(())
    });
    assert!(!daemon.read_log().contains("between you"), "{}", daemon.read_log());
    // It goes on.
    discord.request_reconnect();
    resumed(&discord, "op 7", 1);
}
