//! Nodes that are killed, stopped and paused while clients append through all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;
use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{DEADLINE, Daemon, process, wait};
use rustix::process::Signal;

use super::{Cluster, start_all, try_append};

/// Seconds of faults; `CHORUS_CLUSTER_SECONDS` overrides it.
const SECONDS: u64 = 15;

/// Agents that are appended to.
const AGENTS: usize = 12;

fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or(0)
}

/// Each acknowledged message is there once, and those of one client are in the order of their acknowledgements.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_killed_stopped_and_paused_lose_and_double_nothing() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = Arc::new([cluster.node("a"), cluster.node("b"), cluster.node("c")]);
    let mut daemons = start_all(&homes).map(Some);
    let mut client = daemons[0].as_ref().expect("a daemon").client();
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    names.iter().for_each(|name| client.init(name));
    let over = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(Mutex::new(Vec::<(String, String)>::new()));
    let writers: Vec<_> = (0..4_u64)
        .map(|writer| {
            let (homes, over, acknowledged) = (homes.clone(), over.clone(), acknowledged.clone());
            let (names, runtime) = (names.clone(), tokio::runtime::Handle::current());
            std::thread::spawn(move || {
                let mut rng = Rng::new(writer);
                let mut number = 0;
                while !over.load(Ordering::Relaxed) {
                    let name = &names[pick(&mut rng, AGENTS)];
                    let text = format!("{writer}-{number}");
                    // The same message, through any node, until one acknowledges it.
                    let done = std::iter::repeat_with(|| {
                        let home = &homes[pick(&mut rng, 3)];
                        let mut client = Client::connect(&home.socket()).ok()?;
                        client.set_timeout(Some(Duration::from_secs(20))).ok()?;
                        try_append(&mut client, name, &text).ok()
                    })
                    .inspect(|done| {
                        if done.is_none() {
                            runtime.block_on(wait::pause(Duration::from_millis(50)));
                        }
                    })
                    .take(2_000)
                    .any(|done| done.is_some() || over.load(Ordering::Relaxed));
                    assert!(done, "{text} was never acknowledged");
                    if !over.load(Ordering::Relaxed) {
                        acknowledged.lock().push((name.clone(), text));
                    }
                    number += 1;
                }
            })
        })
        .collect();
    let seconds = rounds_from_env("CHORUS_CLUSTER_SECONDS", SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rng = Rng::new(99);
    while Instant::now() < until {
        wait::pause(Duration::from_millis(500 + rng.below(1_500))).await;
        let victim = pick(&mut rng, 3);
        match rng.below(3) {
            0 => {
                daemons[victim].take().expect("a daemon").kill9();
                wait::pause(Duration::from_millis(rng.below(10_000))).await;
                daemons[victim] = Some(Daemon::start(&homes[victim]));
            }
            1 => {
                assert!(daemons[victim].take().expect("a daemon").terminate().success());
                daemons[victim] = Some(Daemon::start(&homes[victim]));
            }
            _ => {
                let pid = homes[victim].running_pid().expect("a pid");
                process::signal(pid, Signal::STOP);
                wait::pause(Duration::from_millis(rng.below(12_000))).await;
                process::signal(pid, Signal::CONT);
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    let acknowledged = std::mem::take(&mut *acknowledged.lock());
    println!("{} messages were acknowledged in {seconds} s", acknowledged.len());
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let mut client = daemons[0].as_ref().expect("a daemon").client();
    client.set_timeout(Some(DEADLINE * 2)).expect("a time-out");
    for name in &names {
        let texts = client.message_texts(name);
        for (_, text) in acknowledged.iter().filter(|(agent, _)| agent == name) {
            assert_eq!(texts.iter().filter(|there| *there == text).count(), 1, "{name}: {text}");
        }
        // Those of one writer are in the order in which it was answered.
        for writer in 0..4 {
            let own = format!("{writer}-");
            let numbers: Vec<u64> = texts.iter().filter_map(|text| text.strip_prefix(&own)?.parse().ok()).collect();
            assert!(numbers.is_sorted(), "{name}: {numbers:?}");
        }
    }
}
