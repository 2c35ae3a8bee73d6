//! Checks of every state of the protocol.

use crate::report::check;
use crate::setting::{Heartbeats, Setting};

/// Returns true if the bounds are to be larger.
pub fn is_long() -> bool {
    std::env::var("CHORUS_MODEL").is_ok_and(|value| value == "long")
}

/// Three nodes and two agents, the form without heartbeats.
pub(crate) fn three_nodes() -> Setting {
    Setting {
        nodes: 3,
        agents: 2,
        epochs: 3,
        claims: 3,
        messages: 2,
        writes: 3,
        crashes: 1,
        in_flight: 2,
        heartbeats: Heartbeats::AnyMayBeStale,
        silences: true,
        stops: false,
        calm: false,
        symmetric: true,
        without: None,
    }
}

/// Two nodes and one agent, with heartbeats that may be late.
pub(crate) fn two_nodes() -> Setting {
    Setting {
        nodes: 2,
        agents: 1,
        epochs: 2,
        claims: 2,
        writes: 2,
        crashes: 0,
        heartbeats: Heartbeats::Sent,
        ..three_nodes()
    }
}

/// Three nodes and one agent; each node that runs sends its heartbeats.
fn three_nodes_on_time() -> Setting {
    Setting { agents: 1, crashes: 1, heartbeats: Heartbeats::OnTime, silences: false, stops: true, ..three_nodes() }
}

#[test]
fn three_nodes_and_two_agents() {
    let claims = if is_long() { 4 } else { 3 };
    check("3 nodes, 2 agents, any heartbeat may be stale", &Setting { claims, ..three_nodes() });
}

/// Merges no states, so that the check does not depend on how they are merged.
#[test]
fn a_node_that_restarts_twice() {
    let (messages, in_flight) = if is_long() { (3, 3) } else { (2, 2) };
    let setting = Setting {
        nodes: 2,
        agents: 1,
        crashes: 2,
        messages,
        writes: messages,
        in_flight,
        symmetric: false,
        ..three_nodes()
    };
    check("2 nodes, 1 agent, 2 crashes", &setting);
}

#[test]
fn heartbeats_that_may_be_late() {
    let crashes = u8::from(is_long());
    check("2 nodes, 1 agent, heartbeats may be late", &Setting { crashes, ..two_nodes() });
}

#[test]
fn stops_with_heartbeats_on_time() {
    let in_flight = if is_long() { 3 } else { 2 };
    check("3 nodes, 1 agent, heartbeats on time", &Setting { in_flight, ..three_nodes_on_time() });
}
