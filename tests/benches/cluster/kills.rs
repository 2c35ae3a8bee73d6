//! A node that is killed: the time until another one has answered a request for its agent.

use std::time::Duration;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::postgres::Result;
use chorus_tests::rng::Rng;
use chorus_tests::wait::pause;

use super::Nodes;

const KILLS: usize = 40;

/// Heartbeats come in this interval; kills at any moment of it.
const HEARTBEAT: u64 = 2_000;

pub fn measure() -> Result {
    let nodes = Nodes::create()?;
    let mut daemons = nodes.homes.each_ref().map(|home| Some(Daemon::start(home)));
    let mut rng = Rng::new(27);
    let mut took = Vec::new();
    for round in 0..KILLS {
        let (owner, other) = (round % 2, (round + 1) % 2);
        let mut client = daemons[other].as_ref().ok_or("a daemon")?.client();
        client.set_timeout(Some(Duration::from_secs(60))).map_err(|e| e.to_string())?;
        let agent = format!("x{round}");
        let killed = daemons[owner].take().ok_or("a daemon")?;
        killed.client().init(&agent);
        killed.client().append(&agent, "hello");
        assert_eq!(client.append(&agent, "from the other node"), 2);
        nodes.runtime.block_on(pause(Duration::from_millis(HEARTBEAT + rng.below(HEARTBEAT))));
        killed.kill9();
        took.push(time(|| assert_eq!(client.append(&agent, "are you there?"), 3)));
        daemons[owner] = Some(Daemon::start(&nodes.homes[owner]));
    }
    took.sort();
    let percentile = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1];
    let name = format!("until another node answers for one that was killed, p50 of {KILLS}, to 6 s");
    print_report(Measurement { name, floor: Duration::from_secs(6), ours: median(took.clone()), target: 1.0 });
    let name = "the same, p99".to_owned();
    print_report(Measurement { name, floor: Duration::from_secs(10), ours: percentile(99), target: 1.0 });
    Ok(())
}
