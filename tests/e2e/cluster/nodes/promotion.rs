//! A synchronous standby of the database is promoted while clients append.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::postgres::{Database, Server};
use chorus_tests::{DEADLINE, skip, wait, wait_until};

use super::{Cluster, start_all, try_append};

/// Time in which each request is acknowledged.
const PATIENCE: Duration = Duration::from_secs(120);

/// The nodes are not restarted: they find the new primary by the list in their URL.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_a_synchronous_standby_is_promoted() {
    let Some(primary) = Server::start().expect("a server") else {
        return skip("PostgreSQL is not installed here");
    };
    let database = Database::create_on(primary.clone()).await.expect("a database");
    let standby = primary.start_standby("standby").expect("a standby");
    let admin = database.connect().await.expect("a connection");
    let sql = "ALTER SYSTEM SET synchronous_standby_names = 'standby'";
    admin.batch_execute(sql).await.expect("a setting");
    admin.batch_execute("SELECT pg_reload_conf()").await.expect("the setting in use");
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        wait_until("the standby to be synchronous", DEADLINE, || {
            let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            let count: i64 = handle.block_on(admin.query_one(sql, &[])).expect("a count").get(0);
            (count == 1).then_some(())
        });
    });
    drop(admin);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let cluster = Cluster::on(format!("postgresql://postgres@{hosts}/{}", database.name()));
    let homes = Arc::new([cluster.node("a"), cluster.node("b")]);
    let daemons = start_all(&homes);
    let mut client = daemons[0].client();
    ["x", "y"].iter().for_each(|name| client.init(name));
    let over = Arc::new(AtomicBool::new(false));
    let writers = [("x", 0), ("x", 1), ("y", 0), ("y", 1)].map(|(agent, node)| {
        let (homes, over, runtime) = (homes.clone(), over.clone(), handle.clone());
        std::thread::spawn(move || {
            let (mut acknowledged, mut longest) = (Vec::new(), Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let (text, begun) = (format!("{node}-{}", acknowledged.len()), Instant::now());
                loop {
                    let failure = match Client::connect(&homes[node].socket()) {
                        Ok(mut client) => {
                            client.set_timeout(Some(DEADLINE)).expect("a time-out");
                            match try_append(&mut client, agent, &text) {
                                Ok(_) => break,
                                Err(failure) => failure.to_string(),
                            }
                        }
                        Err(failure) => failure.to_string(),
                    };
                    assert!(begun.elapsed() < PATIENCE, "{text} to {agent} was never acknowledged: {failure}");
                    runtime.block_on(wait::pause(Duration::from_millis(50)));
                }
                longest = longest.max(begun.elapsed());
                acknowledged.push(text);
            }
            (agent, acknowledged, longest)
        })
    });
    let ended = chorus_runtime::spawn_blocking(move || {
        let grows = |client: &mut Client| {
            let (before, begun) = (client.message_texts("x").len(), Instant::now());
            wait_until("some appends", PATIENCE, || {
                client.set_timeout(Some(DEADLINE)).expect("a time-out");
                (client.message_texts("x").len() > before + 20).then_some(())
            });
            begun.elapsed()
        };
        grows(&mut client);
        primary.control(&["stop", "-m", "immediate"]).expect("the primary ends");
        standby.control(&["promote"]).expect("a promotion");
        let mut client = wait_until("a node that answers", PATIENCE, || {
            let mut client = daemons[1].client();
            client.set_timeout(Some(DEADLINE)).expect("a time-out");
            try_append(&mut client, "y", "after the promotion").ok().map(|_| client)
        });
        grows(&mut client);
        over.store(true, Ordering::Relaxed);
        let ended = writers.map(|writer| writer.join().expect("a writer"));
        for (agent, acknowledged, _) in &ended {
            let texts = client.message_texts(agent);
            let prefix = acknowledged[0].split('-').next().expect("a number");
            let found = texts.iter().filter(|text| text.split('-').next() == Some(prefix));
            assert!(found.eq(acknowledged), "{agent}: lost, double or in another order");
        }
        ended
    })
    .await
    .expect("a thread");
    let total: usize = ended.iter().map(|(_, acknowledged, _)| acknowledged.len()).sum();
    let longest = ended.iter().map(|(.., longest)| *longest).max().unwrap_or_default();
    println!("{total} appends, the longest of which took {} ms", longest.as_millis());
}
