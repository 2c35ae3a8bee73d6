//! Agents whose node ends, or falls silent.

use std::time::{Duration, Instant};

use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, process, wait_until};
use rustix::process::Signal;

use super::{Cluster, start_all, try_append};

/// Bound of the time in which a node takes over the agent of one that was killed, with room for a busy machine.
const TAKEOVER: Duration = Duration::from_secs(20);

#[test]
fn agents_of_a_node_that_was_killed_go_on_at_another_and_come_back_on_request_only() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.append("x", "one");
    client.save("x", "kept");
    client.append("x", "two");
    a.kill9();
    let begun = Instant::now();
    // The request waits until the heartbeat of the other node is late, since nothing listens there any more.
    assert_eq!(try_append(&mut other, "x", "three").expect("an append after the takeover"), 3);
    assert!(begun.elapsed() < TAKEOVER, "{:?}", begun.elapsed());
    assert!(b.read_log().contains("a node has crashed"), "{}", b.read_log());
    assert_eq!(other.message_texts("x"), ["one", "two", "three"]);
    assert_eq!(other.history("x").len(), 1);
    // It stays where it is when its former node comes back.
    let a = Daemon::start(&homes[0]);
    let mut client = a.client();
    assert_eq!(try_append(&mut client, "x", "four").expect("an append there"), 4);
    assert_eq!(other.message_texts("x"), ["one", "two", "three", "four"]);
    // An orderly stop gives it up: the next request has it at once.
    drop(other);
    assert!(b.terminate().success());
    let begun = Instant::now();
    assert_eq!(client.message_texts("x").len(), 4);
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[test]
fn a_context_that_nobody_asks_for_is_saved_when_it_is_idle_by_the_next_node_also_while_that_is_drained() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = ["a", "b"].map(|name| cluster.node_with(name, "defaults.idle_timeout = \"5s\"\n"));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    other.call::<Drain>(&DrainParams { node: Some("b".into()), undo: false }).expect("cluster.drain");
    client.init("x");
    client.append("x", "one");
    a.kill9();
    // The list claims no agent.
    let saved = wait_until("the session", DEADLINE * 3, || other.agent_status("x").last_session);
    assert_eq!(saved.message_count, 1);
    assert_eq!(other.agent_status("x").node.as_deref(), Some("b"));
}

#[test]
fn a_node_that_restarts_has_its_agents_at_once() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, _b] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    client.append("x", "one");
    a.kill9();
    let a = Daemon::start(&homes[0]);
    let mut client = a.client();
    let live = client.agent_status("x").context.expect("a live context");
    assert_eq!(live.messages, 1);
    client.append("x", "two");
    drop(client);
    assert!(a.terminate().success());
    let a = Daemon::start(&homes[0]);
    let mut client = a.client();
    assert_eq!(client.agent_status("x").context.expect("a live context").messages, 2);
}

#[test]
fn what_a_node_that_was_paused_writes_later_is_refused() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.append("x", "one");
    let pid = homes[0].running_pid().expect("a pid");
    process::signal(pid, Signal::STOP);
    // Sent to the paused node before the other one takes the agent over, and read by it afterwards.
    let late = std::thread::spawn(move || {
        client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
        try_append(&mut client, "x", "late").map_err(|failure| failure.to_string())
    });
    other.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    // The connection to the paused node is open, and nobody answers there.
    let taken = wait_until("the takeover", DEADLINE * 3, || {
        let mut third = b.client();
        third.set_timeout(Some(Duration::from_secs(15))).expect("a time-out");
        try_append(&mut third, "x", "two").ok()
    });
    assert_eq!(taken, 2);
    // Nobody waited until its heartbeat was stale.
    let log = b.read_log();
    assert!(log.contains("has crashed or is cut off"), "{log}");
    process::signal(pid, Signal::CONT);
    // The paused node learns that it has lost the agent, and asks its owner: the message is there once, behind the other.
    let outcome = late.join().expect("a thread");
    let texts = other.message_texts("x");
    match outcome {
        Ok(total) => assert_eq!((total, texts), (3, vec!["one".to_owned(), "two".into(), "late".into()])),
        Err(_) => assert_eq!(texts, ["one", "two"]),
    }
    // Also if nothing was written, it finds out with its next heartbeat.
    let mut again = a.client();
    let expected = other.message_texts("x");
    wait_until("the paused node to ask the new owner", DEADLINE, || {
        (again.message_texts("x") == expected).then_some(())
    });
}
