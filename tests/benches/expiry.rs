//! Bench: 10,000 contexts expire in the same second while another client keeps appending.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams, History, HistoryParams};
use chorus_tests::bulk_data::create_agents;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::{DEADLINE, Daemon, home, wait_until};

const CONTEXTS: usize = 10_000;
const CLIENTS: usize = 16;
const TARGET: Duration = Duration::from_secs(5);

fn append_timed(client: &mut Client, agent: &str) -> Duration {
    let text = "The nightly import dropped every row whose country was empty. ".repeat(10);
    let params = AppendParams { agent: Some(agent.into()), text: Some(text), ..Default::default() };
    time(|| _ = client.call::<Append>(&params).expect("appended"))
}

/// Appends to another agent until `stop` is set; returns when each append was answered and how long it took.
fn append_until_stopped(client: &mut Client, stop: &AtomicBool) -> Vec<(Instant, Duration)> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let one = append_timed(client, "agent-0");
        took.push((Instant::now(), one));
    }
    took
}

fn main() {
    let home = home!();
    create_agents(&home, CONTEXTS + 1);
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"1h\"\n");
    std::thread::scope(|scope| {
        for part in 0..CLIENTS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for n in (1 + part..=CONTEXTS).step_by(CLIENTS) {
                    append_timed(&mut client, &format!("agent-{n}"));
                }
            });
        }
    });
    daemon.kill9();
    // Write out the dirty pages of creating 10,000 agents and of deleting the previous run, which are not to be
    // measured.
    rustix::fs::sync();
    // No real-time scheduler: this measures how the daemon shares the machine with itself. The shorter timeout makes
    // all contexts expire four seconds after the start.
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"4s\"\n");
    let stop = AtomicBool::new(false);
    let (first, done, appended) = std::thread::scope(|scope| {
        let (mut client, stop) = (daemon.client(), &stop);
        let appending = scope.spawn(move || append_until_stopped(&mut client, stop));
        let (first, done) = wait_for_saves(&mut daemon.client());
        stop.store(true, Ordering::Relaxed);
        (first, done, appending.join().expect("the appends"))
    });
    let name = format!("{CONTEXTS} contexts put away, saved durably");
    print_report(Measurement { name, floor: TARGET, ours: done - first, target: 1.0 });
    let (before, during): (Vec<_>, Vec<_>) = appended.into_iter().partition(|(at, _)| *at < first);
    let p50 = |took: Vec<(Instant, Duration)>| median(took.into_iter().map(|(_, one)| one).collect());
    print_report(Measurement {
        name: "p50 of others' appends, over before".into(),
        floor: p50(before),
        ours: p50(during),
        target: 3.0,
    });
}

/// Returns when the first context was saved, and when all were.
fn wait_for_saves(client: &mut Client) -> (Instant, Instant) {
    let params = HistoryParams { all_agents: true, limit: Some(1), ..HistoryParams::default() };
    let (mut first, mut asked) = (None, Instant::now());
    let ended = wait_until("every context to be saved", DEADLINE * 4, || {
        // Poll every 20 ms: precise enough, and hardly any load.
        if asked.elapsed() < Duration::from_millis(20) {
            return None;
        }
        asked = Instant::now();
        let total = client.call::<History>(&params).expect("a page").total;
        if total > 0 {
            first.get_or_insert_with(Instant::now);
        }
        (total >= CONTEXTS as u64).then(Instant::now)
    });
    assert_eq!(client.history("agent-1").len(), 1);
    (first.expect("a first one"), ended)
}
