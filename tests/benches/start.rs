//! Bench: start of a daemon with 2,000 live contexts, compared with a start without any, and the same with 8,000 more agents.

use std::time::Duration;

use chorus_tests::bulk_data::{append_to_agents, create_agents};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};

const AGENTS: usize = 10_000;
const CONTEXTS: usize = 2000;
const MESSAGES: usize = 50;
const ROUNDS: usize = 21;

fn time_start(home: &Home) -> Duration {
    let mut daemon = None;
    let took = time(|| daemon = Some(Daemon::start(home)));
    daemon.expect("a daemon").kill9();
    took
}

/// Makes the contexts of the first agents.
fn fill(home: &Home) {
    let daemon = Daemon::start(home);
    append_to_agents(&daemon, CONTEXTS, MESSAGES);
    daemon.kill9();
}

/// Measures starts of `full`, alternating with those of `empty`.
fn measure(what: &str, target: Duration, empty: &Home, full: &Home) {
    let mut times = Vec::new();
    let ratio = measure_paired(
        format!("start, {what} over none"),
        f64::INFINITY,
        ROUNDS,
        || time_start(empty),
        || {
            let took = time_start(full);
            times.push(took);
            took
        },
    );
    print_report(&ratio);
    print_report(Measurement { name: format!("start, {what}"), floor: target, ours: median(times), target: 1.0 });
    let daemon = Daemon::start(full);
    assert_eq!(daemon.client().message_texts("agent-1999").len(), MESSAGES, "and they are all there");
}

fn main() {
    let (empty, full, large) = (home!(), home!(), home!());
    for (home, agents) in [(&full, CONTEXTS), (&large, AGENTS)] {
        create_agents(home, agents);
        fill(home);
    }
    use_realtime_scheduler();
    time_start(&empty);
    measure("2,000 contexts of 50 messages", Duration::from_millis(150), &empty, &full);
    measure("10,000 agents, 2,000 of them live with 50 messages", Duration::from_millis(100), &empty, &large);
}
