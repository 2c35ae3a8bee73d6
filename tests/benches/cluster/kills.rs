//! A node that is killed, or paused as a cut cable would silence it: the time until another one has answered a request for its agent.

use std::time::Duration;

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::postgres::Result;
use chorus_tests::process;
use chorus_tests::rng::Rng;
use chorus_tests::wait::pause;

use rustix::process::Signal;

use super::Nodes;

const KILLS: usize = 40;

/// Heartbeats come in this interval; kills at any moment of it.
const HEARTBEAT: u64 = 2_000;

/// How a node falls silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Its process ends: its port refuses connections.
    Killed,
    /// Its process stands still: nobody answers at its port, and connections to it stay open.
    Paused,
}

/// Kills or pauses one of two nodes in turn, while a client of the other one asks for an agent of it.
pub fn measure() -> Result {
    measure_fault(Fault::Killed, "was killed")?;
    measure_fault(Fault::Paused, "is cut off")
}

fn measure_fault(fault: Fault, what: &str) -> Result {
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
        // With a key, because the silent node may have got it: it is sent again to the next one.
        let params = AppendParams {
            agent: Some(agent.clone()),
            messages: vec![NewMessage::text(Role::User, "are you there?")],
            key: Some("asked".into()),
            ..Default::default()
        };
        let asked =
            |client: &mut Client| time(|| assert_eq!(client.call::<Append>(&params).expect("an answer").messages, 3));
        match fault {
            Fault::Killed => {
                killed.kill9();
                took.push(asked(&mut client));
            }
            Fault::Paused => {
                process::signal(nodes.homes[owner].running_pid().ok_or("a pid")?, Signal::STOP);
                took.push(asked(&mut client));
                killed.kill9();
            }
        }
        daemons[owner] = Some(Daemon::start(&nodes.homes[owner]));
    }
    took.sort();
    let percentile = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1];
    let name = format!("until another node answers for one that {what}, p50 of {KILLS}, to 6 s");
    print_report(Measurement { name, floor: Duration::from_secs(6), ours: median(took.clone()), target: 1.0 });
    let name = "the same, p99".to_owned();
    print_report(Measurement { name, floor: Duration::from_secs(10), ours: percentile(99), target: 1.0 });
    Ok(())
}
