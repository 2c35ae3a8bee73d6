//! Daemons that reach the database through pgbouncer.

use std::time::Instant;

use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;
use chorus_tests::{DEADLINE, wait_until};

use super::{Cluster, start_all, try_append};

/// Agents that move.
const AGENTS: usize = 6;

/// No node is notified then: each learns from its heartbeats what it is to claim.
#[tokio::test(flavor = "multi_thread")]
async fn agents_move_through_a_pooler_in_transaction_mode() {
    let Some(database) = Database::create().await.expect("a database") else { return };
    let Some(port) = database.port_through(PoolMode::Transaction).expect("a pooler") else { return };
    let cluster = Cluster::on(database.url_at(port));
    let homes = [cluster.node("a"), cluster.node("b"), cluster.node("c")];
    let daemons = start_all(&homes);
    let mut clients = daemons.each_ref().map(|daemon| daemon.client());
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    for name in &names {
        clients[0].init(name);
        clients[0].append(name, "one");
        assert_eq!(clients[0].agent_status(name).node.as_deref(), Some("a"));
    }
    let drained = clients[0].call::<Drain>(&DrainParams::default()).expect("cluster.drain");
    assert_eq!((drained.moved, drained.left.len()), (AGENTS as u64, 0), "{drained:?}");
    // Nobody asks for them: their successors claim them by themselves.
    let moved = Instant::now();
    let count = |sql: &'static str| {
        let database = &database;
        async move { database.connect().await.expect("a connection").query_one(sql, &[]).await.expect("a count").get(0) }
    };
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        wait_until("the successors", DEADLINE, || {
            let free: i64 = handle.block_on(count("SELECT count(*) FROM heads WHERE owner_node IS NULL"));
            (free == 0).then_some(())
        });
    });
    println!("the last agent was claimed {} ms after the drain", moved.elapsed().as_millis());
    for (number, name) in names.iter().enumerate() {
        let client = &mut clients[number % 3];
        assert_eq!(try_append(client, name, "two").expect("an append"), 2);
        assert_ne!(client.agent_status(name).node.as_deref(), Some("a"));
    }
}
