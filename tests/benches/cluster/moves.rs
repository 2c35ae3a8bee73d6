//! An agent that stands idle and moves to another node: the longest time in which a client of that node has no answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::postgres::Result;
use chorus_tests::wait::pause;

use super::Nodes;

/// Moves there and back.
const MOVES: usize = 40;

/// Messages of the agent.
const MESSAGES: usize = 100;

/// Time in which a client asks before and after a move.
const AROUND: Duration = Duration::from_millis(300);

pub fn measure() -> Result {
    let nodes = Nodes::create()?;
    let daemons = nodes.homes.each_ref().map(Daemon::start);
    let mut clients = daemons.each_ref().map(|daemon| daemon.client());
    clients[0].init("x");
    for n in 0..MESSAGES {
        clients[0].append("x", &format!("message {n}"));
    }
    let mut longest = Vec::new();
    for round in 0..MOVES {
        let (from, to) = (round % 2, (round + 1) % 2);
        let over = AtomicBool::new(false);
        let unanswered = thread::scope(|scope| {
            let (mut asker, over) = (daemons[to].client(), &over);
            let asking = scope.spawn(move || {
                let mut longest = Duration::ZERO;
                while !over.load(Ordering::Relaxed) {
                    longest = longest.max(time(|| assert!(asker.append("x", "are you there?") > 0)));
                }
                longest
            });
            nodes.runtime.block_on(pause(AROUND));
            let drained = clients[from].call::<Drain>(&DrainParams::default()).map_err(|e| format!("{e:?}"))?;
            nodes.runtime.block_on(pause(AROUND));
            over.store(true, Ordering::Relaxed);
            clients[from]
                .call::<Drain>(&DrainParams { undo: true, ..Default::default() })
                .map_err(|e| format!("{e:?}"))?;
            if drained.moved != 1 {
                return Err(format!("{drained:?}"));
            }
            asking.join().map_err(|_| "the client failed".to_owned())
        })?;
        longest.push(unanswered);
    }
    let floor = Duration::from_millis(150);
    let worst = longest.iter().copied().max().unwrap_or_default();
    let name = format!("without an answer while an idle agent moves, median of {MOVES}, to 150 ms");
    print_report(Measurement { name, floor, ours: median(longest), target: 1.0 });
    let name = format!("the same, the worst of {MOVES}");
    print_report(Measurement { name, floor, ours: worst, target: 1.0 });
    Ok(())
}
