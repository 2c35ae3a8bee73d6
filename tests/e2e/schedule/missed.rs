//! Times that pass while the daemon does not run, or the machine sleeps.

use chorus_proto::methods::schedule::RunOutcome;
use chorus_tests::InProcessDaemon;

use super::{HOUR, MINUTE, add, create_agent, every, find, once, ran, sent, skipping, start, time};

#[test]
fn one_run_makes_up_for_all_that_a_stop_has_missed_or_none_does() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, every("runs", HOUR));
    add(&mut client, skipping(every("skips", HOUR)));
    add(&mut client, once("single", HOUR));
    add(&mut client, skipping(once("single-skips", HOUR)));
    drop(client);
    daemon.stop().expect("an orderly stop");
    hands.advance(HOUR * 5 + MINUTE * 30);
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    let runs = ran(&mut client, "runs", 1);
    assert_eq!((runs.runs[0].due_at, runs.runs[0].outcome), (time("2026-03-02T07:00:00Z"), RunOutcome::Ok));
    assert_eq!(runs.next_at, Some(time("2026-03-02T12:00:00Z")));
    let skips = ran(&mut client, "skips", 1);
    assert_eq!((skips.runs[0].outcome, skips.next_at), (RunOutcome::Skipped, runs.next_at));
    assert_eq!(ran(&mut client, "single", 1).runs[0].outcome, RunOutcome::Ok);
    assert_eq!(ran(&mut client, "single-skips", 1).runs[0].outcome, RunOutcome::Skipped);
    hands.advance(MINUTE * 30);
    assert_eq!(ran(&mut client, "skips", 2).runs[0].outcome, RunOutcome::Ok);
    ran(&mut client, "runs", 2);
    assert_eq!(sent(&mut client, "schedule-runs").len(), 2);
    assert_eq!(sent(&mut client, "schedule-skips").len(), 1);
}

#[test]
fn after_a_sleep_of_hours_it_runs_once_and_on_time_even_if_it_skips() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, every("runs", HOUR));
    add(&mut client, skipping(every("skips", HOUR)));
    // The machine wakes a few seconds after a full hour.
    hands.advance(HOUR * 8 + MINUTE / 6);
    for name in ["runs", "skips"] {
        let schedule = ran(&mut client, name, 1);
        assert_eq!(schedule.runs[0].due_at, time("2026-03-02T14:00:00Z"), "{name}");
        assert_eq!(schedule.runs[0].outcome, RunOutcome::Ok, "{name}");
    }
    assert_eq!(find(&mut client, "runs").runs.len(), 1);
    // What it skipped is recorded although the last one was on time.
    let skips = find(&mut client, "skips").runs;
    assert_eq!(skips.iter().map(|run| run.outcome).collect::<Vec<_>>(), [RunOutcome::Ok, RunOutcome::Skipped]);
}
