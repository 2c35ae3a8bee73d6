//! Summer time and zones: deadlines are instants, no zone has a part in them.

use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, InProcessDaemon, ManualClock};
use jiff::{SignedDuration, Timestamp};

use super::{TIMEOUT, busy, only_the_sentinel, wait_for};
use crate::home;

#[test]
fn a_timer_runs_through_the_hour_that_summer_time_leaves_out_or_repeats() {
    // A quarter of an hour before the change in Berlin in spring and in autumn, and in New York.
    for before in ["2026-03-29T00:45:00Z", "2026-10-25T00:45:00Z", "2026-11-01T05:45:00Z"] {
        let (home, hands) = (home(), ManualClock::new(before.parse().expect("a time")));
        let daemon = InProcessDaemon::start(&home, &hands);
        let mut client = daemon.client();
        busy(&mut client, "a", "30m");
        busy(&mut client, "sentinel", "1799s");
        hands.advance(TIMEOUT - Duration::from_secs(1));
        only_the_sentinel(&mut client, "sentinel");
        hands.advance(Duration::from_secs(1));
        assert_eq!(wait_for(&mut client, 2), ["sentinel", "a"]);
    }
}

#[test]
fn a_daemon_in_any_zone_has_the_same_deadline() {
    let home = home();
    // A rule that changes its offset every night, one half an hour off, and none.
    for zone in ["WET0WEST,0/0,364/0", "America/St_Johns", "UTC"] {
        let mut command = home.command(home.bins.chorusd);
        command.env("TZ", zone);
        let daemon = Daemon::start_command(&home, command);
        let mut client = daemon.client();
        let name = zone.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
        let before = Timestamp::now();
        busy(&mut client, &name, "30m");
        let after = Timestamp::now();
        let deadline = client.agent_status(&name).context.expect("a context").idle_deadline_at.expect("a deadline");
        let (timeout, ms) = (SignedDuration::from_mins(30), SignedDuration::from_millis(1));
        assert!(before + timeout - ms <= deadline && deadline <= after + timeout + ms, "{zone}: {deadline}");
        assert!(daemon.terminate().success());
    }
}
