//! The time without an answer of agents whose node was killed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::rng::Rng;

use super::super::try_append;
use super::Chaos;

/// Agents that are asked for after a kill.
const ASKED: usize = 4;

/// Names shared agents of a node, as another one sees them.
pub(super) fn agents_of(chaos: &Chaos, node: usize, through: usize) -> Vec<String> {
    let Ok(mut client) = Client::connect(&chaos.homes[through].socket()) else { return Vec::new() };
    if client.set_timeout(Some(Duration::from_secs(10))).is_err() {
        return Vec::new();
    }
    let Ok(status) = client.call::<Status>(&StatusParams::default()) else { return Vec::new() };
    let name = ["a", "b", "c"][node];
    let found = status.agents.into_iter().filter(|agent| agent.node.as_deref() == Some(name));
    found.map(|agent| agent.name).filter(|name| chaos.shared.contains(name)).take(ASKED).collect()
}

/// Appends to each agent through nodes that run, from the moment of a kill on. Returns how long each waited.
pub(super) fn measure(
    chaos: &Arc<Chaos>,
    agents: Vec<String>,
    nodes: [usize; 2],
    kill: (u64, Instant),
) -> Vec<Duration> {
    let (number, killed) = kill;
    let asked = (1_000..).zip(agents).map(|(writer, agent)| {
        let chaos = chaos.clone();
        std::thread::spawn(move || {
            let (text, mut rng) = (format!("m{writer}.{number}"), Rng::new(writer + number));
            chaos.until_answered(&text, (&mut rng, &nodes), |client| try_append(client, &agent, &text));
            let waited = killed.elapsed();
            chaos.acknowledged.lock().push((agent, text));
            waited
        })
    });
    let asked: Vec<_> = asked.collect();
    asked.into_iter().map(|thread| thread.join().expect("an append after a kill")).collect()
}

/// Says what the times were.
pub(super) fn describe(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1)));
    let [half, most] = [50, 99].map(|part| at(part).map_or(0.0, Duration::as_secs_f64));
    format!("node killed until the agent answers elsewhere: p50 {half:.1} s, p99 {most:.1} s of {} agents", times.len())
}
