//! 10,000 agents with live contexts on one node: what they cost while nobody asks for them, a restart of the node, and how soon another
//! node serves 1,000 of them after a kill.

use std::thread;
use std::time::{Duration, Instant};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::postgres::Result;
use chorus_tests::wait::pause;
use chorus_tests::{Daemon, Home};

use super::Nodes;

const CLIENTS: usize = 8;
const ASKED: usize = 1_000;
/// Time in which the statements of a node are counted.
const REST: Duration = Duration::from_secs(60);
/// Time for what follows from the last requests.
const SETTLE: Duration = Duration::from_secs(10);
/// Statements a second that a node with agents may run while nobody asks for anything.
const STATEMENTS: f64 = 0.5;
const RESTARTS: usize = 5;

/// Number of agents, which `CHORUS_AGENTS` can set.
fn agent_count() -> usize {
    std::env::var("CHORUS_AGENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000)
}

/// Does something for each agent, by several clients at once.
fn for_each(daemon: &Daemon, range: std::ops::Range<usize>, work: impl Fn(&mut chorus_proto::Client, &str) + Sync) {
    thread::scope(|scope| {
        for part in 0..CLIENTS {
            let (mut client, range, work) = (daemon.client(), range.clone(), &work);
            client.set_timeout(Some(Duration::from_secs(60))).expect("a time-out");
            scope.spawn(move || {
                range.skip(part).step_by(CLIENTS).for_each(|n| work(&mut client, &format!("agent-{n}")));
            });
        }
    });
}

/// Counts from a heartbeat to another, so that the time holds whole intervals.
fn statements_per_second(nodes: &Nodes) -> Result<f64> {
    let begun = nodes.wait_for_heartbeat("a")?;
    let before = nodes.statements()?;
    nodes.runtime.block_on(pause(REST));
    let time = nodes.wait_for_heartbeat("a")?.duration_since(begun);
    Ok((nodes.statements()? - before) as f64 / time.as_secs_f64())
}

fn time_restart(home: &Home) -> (Duration, Daemon) {
    let mut daemon = None;
    let took = time(|| daemon = Some(Daemon::start(home)));
    (took, daemon.expect("a daemon"))
}

pub fn measure() -> Result {
    let count = agent_count();
    let nodes = Nodes::create()?;
    let mut a = Daemon::start(&nodes.homes[0]);
    a.client().init("agent-0");
    a.client().append("agent-0", "hello");
    let of_one = statements_per_second(&nodes)?;
    let before = (a.rss(), nodes.database_bytes()?);
    for_each(&a, 1..count, |client, name| {
        client.init(name);
        client.append(name, "hello");
    });
    nodes.runtime.block_on(pause(SETTLE));
    let of_all = statements_per_second(&nodes)?;
    let each = |now: u64, before: u64| (now.saturating_sub(before) / count as u64) >> 10;
    print_report(format_args!(
        "each agent with a live context of one message: {} KiB in the memory of its node, {} KiB in the database",
        each(a.rss(), before.0),
        each(nodes.database_bytes()?, before.1)
    ));
    let verdict = if of_all <= STATEMENTS { "met" } else { "MISSED" };
    print_report(format_args!(
        "statements a second at rest: {of_one:.2} with 1 agent, {of_all:.2} with {count}, target {STATEMENTS}  {verdict}"
    ));
    let mut restarts = Vec::new();
    for _ in 0..RESTARTS {
        a.kill9();
        let (took, daemon) = time_restart(&nodes.homes[0]);
        (a, _) = (daemon, restarts.push(took));
    }
    let name = format!("restart with {count} live agents, to a second");
    let floor = Duration::from_secs(1);
    print_report(Measurement { name, floor, ours: median(restarts), target: 1.0 });
    let b = Daemon::start(&nodes.homes[1]);
    a.kill9();
    let begun = Instant::now();
    for_each(&b, 0..ASKED.min(count), |client, name| assert_eq!(client.append(name, "again"), 2));
    let name = format!("{} of {count} agents served after a kill, to 15 s", ASKED.min(count));
    print_report(Measurement { name, floor: Duration::from_secs(15), ours: begun.elapsed(), target: 1.0 });
    Ok(())
}
