//! The time of day jumps, or the machine sleeps.

use std::fs;
use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, InProcessDaemon, wait_until};
use jiff::SignedDuration;

use super::{MINUTE, TIMEOUT, busy, hands, only_the_sentinel, put_away, saved_once, wait_for};
use crate::context::idle::timeout::notices;
use crate::home;

/// The time of day is set by `jump` after a message: the timer runs for its thirty minutes, to the second.
fn nothing_happens(jump: SignedDuration) {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "a", "30m");
    busy(&mut client, "sentinel", "1799s");
    hands.shift_time_of_day(jump);
    // What comes after the jump has its whole time, too.
    busy(&mut client, "later", "30m");
    hands.advance(TIMEOUT - Duration::from_secs(1));
    only_the_sentinel(&mut client, "sentinel");
    assert_eq!(client.message_texts("a"), ["A word of a."]);
    hands.advance(Duration::from_secs(1));
    let mut agents = wait_for(&mut client, 3);
    agents.sort();
    assert_eq!(agents, ["a", "later", "sentinel"]);
    saved_once(&mut client, "a");
    saved_once(&mut client, "later");
}

#[test]
fn a_clock_set_back_an_hour_moves_no_timer() {
    nothing_happens(SignedDuration::from_hours(-1));
}

#[test]
fn a_clock_set_forward_ten_years_moves_no_timer() {
    nothing_happens(SignedDuration::from_hours(10 * 365 * 24));
}

#[test]
fn a_message_at_the_same_time_of_day_as_the_last_one_resets_the_timer() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "a", "30m");
    hands.advance(MINUTE * 20);
    hands.shift_time_of_day(SignedDuration::from_mins(-20));
    client.append("a", "The same time of day, twenty minutes later.");
    busy(&mut client, "sentinel", "29m");
    hands.advance(MINUTE * 29);
    only_the_sentinel(&mut client, "sentinel");
    hands.advance(MINUTE);
    wait_for(&mut client, 2);
    assert_eq!(saved_once(&mut client, "a").header.message_count, 2);
}

#[test]
fn after_eight_hours_of_sleep_all_that_is_due_is_put_away_once() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for (agent, timeout) in [("a", "10m"), ("b", "30m"), ("c", "9h")] {
        busy(&mut client, agent, timeout);
    }
    hands.advance(MINUTE * 60 * 8);
    let mut agents = wait_for(&mut client, 2);
    agents.sort();
    assert_eq!(agents, ["a", "b"]);
    let session = saved_once(&mut client, "b");
    let summary = session.header.summary.expect("a summary");
    let expected = format!(
        "Session saved: {}. Context cleared after 30 minutes of inactivity. Use /context restore {} to resume.",
        summary.trim_end_matches('.'),
        session.short_id
    );
    let notice = notices(&mut client).into_iter().find(|event| event.agent.as_deref() == Some("b"));
    assert_eq!(notice.expect("its notice").data["text"], expected);
    assert_eq!(client.message_texts("c"), ["A word of c."]);
    // Another night: the one that was left is put away, and the others are not put away again.
    hands.advance(MINUTE * 60 * 8);
    assert_eq!(wait_for(&mut client, 3)[2], "c");
    for agent in ["a", "b", "c"] {
        saved_once(&mut client, agent);
    }
}

#[test]
fn a_read_does_not_reset_the_timer() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "a", "30m");
    hands.advance(MINUTE * 29);
    assert_eq!(client.message_texts("a"), ["A word of a."]);
    client.agent_status("a");
    client.history("a");
    hands.advance(MINUTE);
    wait_for(&mut client, 1);
    saved_once(&mut client, "a");
}

#[test]
fn what_cannot_be_saved_stays_live_and_is_saved_a_minute_after_it_can_be() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "a", "30m");
    busy(&mut client, "sentinel", "31m");
    let (sessions, aside) = (home.sessions_dir("a"), home.temp_dir().join("aside"));
    fs::rename(&sessions, &aside).expect("sessions/ goes aside");
    fs::write(&sessions, "in the way").expect("a file in its place");
    hands.advance(MINUTE * 31);
    only_the_sentinel(&mut client, "sentinel");
    assert_eq!(client.message_texts("a"), ["A word of a."]);
    fs::remove_file(&sessions).expect("the file goes");
    fs::rename(&aside, &sessions).expect("sessions/ comes back");
    // The failed save may be on its way still: it is tried again a minute after it has failed.
    wait_until("the save", DEADLINE, || {
        hands.advance(MINUTE);
        (put_away(&mut client).len() == 2).then_some(())
    });
    saved_once(&mut client, "a");
}
