//! The two days of the year on which the clocks are changed.

use chorus_tests::InProcessDaemon;

use super::{HOUR, MINUTE, add, create_agent, cron, let_the_timer_look, ran, start, time};

#[test]
fn half_past_two_in_the_night_comes_once_on_the_day_without_it() {
    let (_server, home, hands) = start("2026-03-28T12:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    let next = add(&mut client, cron("night", "30 2 * * *", "Europe/Berlin"));
    assert_eq!(next, ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"].map(time));
    hands.advance(HOUR * 13 + MINUTE * 30);
    assert_eq!(ran(&mut client, "night", 1).runs[0].due_at, next[0]);
    hands.advance(HOUR * 23);
    assert_eq!(ran(&mut client, "night", 2).runs[0].due_at, next[1]);
}

#[test]
fn half_past_two_in_the_night_comes_once_on_the_day_with_two_of_them() {
    let (_server, home, hands) = start("2026-10-24T12:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    let next = add(&mut client, cron("night", "30 2 * * *", "Europe/Berlin"));
    assert_eq!(next, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"].map(time));
    hands.advance(HOUR * 12 + MINUTE * 30);
    assert_eq!(ran(&mut client, "night", 1).runs[0].due_at, next[0]);
    // The second half past two.
    hands.advance(HOUR);
    let_the_timer_look(&mut client, &hands, "sentinel");
    assert_eq!(ran(&mut client, "night", 1).next_at, Some(next[1]));
}
