//! A deadline over a restart, with the time of day moved while nothing ran.

use std::time::Duration;

use chorus_proto::Trigger;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{InProcessDaemon, ManualClock};
use jiff::SignedDuration;

use super::{MINUTE, busy, hands, only_the_sentinel, wait_for};
use crate::home;

const SECOND: Duration = Duration::from_secs(1);

/// A context is left alone for `before`, the daemon stops, the time of day moves by `moved`, the machine starts anew:
/// then `left` is left.
fn over_a_restart(timeout: Duration, before: Duration, moved: SignedDuration, left: Duration) {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    busy(&mut daemon.client(), "a", &format!("{}s", timeout.as_secs()));
    hands.advance(before);
    let stopped_at = chorus_clock::TimeSource::now(&hands);
    daemon.stop().expect("an orderly end");
    let hands = ManualClock::new(stopped_at + moved);
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "sentinel", &format!("{}s", (left - SECOND).as_secs()));
    hands.advance(left - SECOND);
    only_the_sentinel(&mut client, "sentinel");
    assert_eq!(client.message_texts("a"), ["A word of a."]);
    hands.advance(SECOND);
    assert_eq!(wait_for(&mut client, 2), ["sentinel", "a"]);
    // The stop has saved it: the timer clears and names that session.
    let sessions = client.history("a");
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].header.trigger, Trigger::Shutdown);
}

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

#[test]
fn time_that_passes_between_two_runs_counts() {
    over_a_restart(HALF_AN_HOUR, MINUTE * 10, SignedDuration::from_mins(5), MINUTE * 15);
}

#[test]
fn a_deadline_that_has_passed_leaves_a_minute() {
    over_a_restart(HALF_AN_HOUR, MINUTE * 10, SignedDuration::from_hours(8), MINUTE);
}

#[test]
fn a_clock_that_went_forward_ten_years_leaves_a_minute() {
    over_a_restart(HALF_AN_HOUR, SECOND, SignedDuration::from_hours(10 * 365 * 24), MINUTE);
}

#[test]
fn a_clock_that_went_back_an_hour_leaves_no_more_than_the_timeout() {
    over_a_restart(HALF_AN_HOUR, MINUTE * 29, SignedDuration::from_hours(-1), HALF_AN_HOUR);
}

#[test]
fn a_timeout_of_less_than_a_minute_is_what_is_left() {
    over_a_restart(SECOND * 10, SECOND * 9, SignedDuration::from_hours(1), SECOND * 10);
}
