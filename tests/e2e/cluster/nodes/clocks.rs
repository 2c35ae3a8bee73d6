//! A node whose clock is wrong: the database decides the time.

use std::time::Instant;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::shifted_clock::clock_ahead;
use chorus_tests::{DEADLINE, Daemon, InProcessDaemon, wait_until};
use jiff::SignedDuration;

use super::{Cluster, try_append};

#[test]
fn a_node_whose_clock_is_five_minutes_ahead_takes_nothing_over_and_is_not_taken_for_dead() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let a = Daemon::start(&homes[0]);
    let b = InProcessDaemon::start_at(&homes[1], &clock_ahead(SignedDuration::from_mins(5)));
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.append("x", "one");
    other.init("y");
    assert_eq!(try_append(&mut other, "y", "one").expect("an append"), 1);
    // For longer than a heartbeat is good, each asks the other for its agent.
    let (begun, mut total) = (Instant::now(), 1);
    wait_until("ten seconds", DEADLINE * 3, || {
        total += 1;
        assert_eq!(try_append(&mut other, "x", &format!("{total}")).expect("an append"), total);
        assert_eq!(try_append(&mut client, "y", &format!("{total}")).expect("an append"), total);
        assert_eq!(other.agent_status("x").node.as_deref(), Some("a"));
        assert_eq!(client.agent_status("y").node.as_deref(), Some("b"));
        (begun.elapsed().as_secs() >= 10).then_some(())
    });
    // Its clock does not keep it from taking over.
    drop(client);
    a.kill9();
    let begun = Instant::now();
    other.set_timeout(Some(DEADLINE * 2)).expect("a time-out");
    assert_eq!(try_append(&mut other, "x", "last").expect("an append after the takeover"), total + 1);
    assert!(begun.elapsed().as_secs() >= 3, "the heartbeat of the node was not stale yet: {:?}", begun.elapsed());
    drop(other);
    b.stop().expect("an orderly stop");
}
