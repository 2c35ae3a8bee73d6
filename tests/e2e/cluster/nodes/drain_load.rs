//! Nodes that are drained one after the other while clients append through all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::Rng;
use chorus_tests::wait;

use super::{Cluster, start_all, try_append};

/// Agents that are appended to.
const AGENTS: u64 = 12;

/// Drains of all nodes.
const DRAINS: usize = 9;

/// No client notices a drain by more than a pause: each message is acknowledged at the first attempt, and is there once.
#[tokio::test(flavor = "multi_thread")]
async fn no_append_fails_while_nodes_are_drained_in_turn() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = Arc::new([cluster.node("a"), cluster.node("b"), cluster.node("c")]);
    let daemons = start_all(&homes);
    let mut clients = daemons.each_ref().map(|daemon| daemon.client());
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    names.iter().for_each(|name| clients[0].init(name));
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4_u64)
        .map(|writer| {
            let (homes, over, names) = (homes.clone(), over.clone(), names.clone());
            std::thread::spawn(move || {
                let mut rng = Rng::new(writer);
                let mut clients =
                    homes.each_ref().map(|home| Client::connect(&home.socket()).expect("a client of each node"));
                let (mut acknowledged, mut longest) = (Vec::new(), Duration::ZERO);
                while !over.load(Ordering::Relaxed) {
                    let name = &names[usize::try_from(rng.below(AGENTS)).expect("a number")];
                    let client = &mut clients[usize::try_from(rng.below(3)).expect("a number")];
                    let (text, begun) = (format!("{writer}-{}", acknowledged.len()), Instant::now());
                    if let Err(failure) = try_append(client, name, &text) {
                        panic!("{text} to {name}: {failure:?}");
                    }
                    longest = longest.max(begun.elapsed());
                    acknowledged.push((name.clone(), text));
                }
                (acknowledged, longest)
            })
        })
        .collect();
    let mut moved = 0;
    for round in 0..DRAINS {
        wait::pause(Duration::from_millis(300)).await;
        let client = &mut clients[round % 3];
        let drained = client.call::<Drain>(&DrainParams::default()).expect("cluster.drain");
        assert!(drained.left.is_empty(), "{drained:?}");
        moved += drained.moved;
        client.call::<Drain>(&DrainParams { undo: true, ..Default::default() }).expect("cluster.drain");
    }
    over.store(true, Ordering::Relaxed);
    let ended: Vec<_> = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
    let longest = ended.iter().map(|(_, longest)| *longest).max().unwrap_or_default();
    let total: usize = ended.iter().map(|(acknowledged, _)| acknowledged.len()).sum();
    println!("{total} appends, {moved} moves of agents; the longest append took {} ms", longest.as_millis());
    assert!(moved >= AGENTS, "the agents have hardly moved: {moved}");
    for name in &names {
        let texts = clients[0].message_texts(name);
        for (acknowledged, _) in &ended {
            let expected = acknowledged.iter().filter(|(agent, _)| agent == name).map(|(_, text)| text);
            let writer = acknowledged[0].1.split('-').next().expect("a number");
            let found = texts.iter().filter(|text| text.split('-').next() == Some(writer));
            assert!(expected.eq(found), "{name}: lost, double or in another order");
        }
    }
}
