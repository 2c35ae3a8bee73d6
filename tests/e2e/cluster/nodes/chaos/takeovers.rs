//! The time without an answer of agents whose node was killed or cut off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::rng::Rng;

use super::super::try_append;
use super::{Chaos, NAMES};

/// Agents that are asked for after a node was killed or cut off, in the short form and in the long one.
const ASKED: [usize; 2] = [6, 20];

/// Times from a fault until an agent of the node was served by another one, one for each agent.
#[derive(Debug, Default)]
pub(super) struct Takeovers {
    pub(super) killed: Vec<Duration>,
    pub(super) cut_off: Vec<Duration>,
}

/// Names shared agents of a node, as another one sees them.
pub(super) fn agents_of(chaos: &Chaos, node: usize, through: usize) -> Vec<String> {
    let Ok(mut client) = Client::connect(&chaos.homes[through].socket()) else { return Vec::new() };
    if client.set_timeout(Some(Duration::from_secs(10))).is_err() {
        return Vec::new();
    }
    let Ok(status) = client.call::<Status>(&StatusParams::default()) else { return Vec::new() };
    let found = status.agents.into_iter().filter(|agent| agent.node.as_deref() == Some(NAMES[node]));
    let asked = ASKED[usize::from(chaos.is_long)];
    found.map(|agent| agent.name).filter(|name| chaos.shared.contains(name)).take(asked).collect()
}

/// Appends to each agent through nodes that run, from the moment of a fault on. Returns how long each waited.
pub(super) fn measure(
    chaos: &Arc<Chaos>,
    agents: Vec<String>,
    nodes: [usize; 2],
    fault: (u64, Instant),
) -> Vec<Duration> {
    let (number, began) = fault;
    let asked = (1_000..).zip(agents).map(|(writer, agent)| {
        let chaos = chaos.clone();
        std::thread::spawn(move || {
            let (text, mut rng) = (format!("m{writer}.{number}"), Rng::new(writer + number));
            chaos.until_answered(&text, (&mut rng, &nodes), |client| try_append(client, &agent, &text));
            let waited = began.elapsed();
            chaos.acknowledged.lock().push((agent, text));
            waited
        })
    });
    let asked: Vec<_> = asked.collect();
    asked.into_iter().map(|thread| thread.join().expect("an append after a fault")).collect()
}

impl Takeovers {
    /// Says what the times were.
    pub(super) fn describe(&mut self) -> String {
        let killed = describe(&mut self.killed);
        format!("until another node serves an agent: killed {killed}; cut off {}", describe(&mut self.cut_off))
    }
}

fn describe(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let Some(longest) = times.last() else { return "(none)".to_owned() };
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64();
    let count = times.len();
    format!("p50 {:.1} s, p99 {:.1} s, max {:.1} s ({count} agents)", at(50), at(99), longest.as_secs_f64())
}
