//! `cluster forget`: nodes that do not come back.

use chorus_proto::Client;
use chorus_proto::error::exit;
use chorus_proto::methods::cluster::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::postgres::Database;
use chorus_tests::{DEADLINE, Daemon, process, wait_until};
use rustix::process::Signal;

use super::{Cluster, start_all, try_append};

/// Columns with the names of nodes that are records of what was done, or which the node needs if it comes back.
const RECORDS: [(&str, &str); 12] = [
    ("agent_files", "node"),
    ("audit_log", "node"),
    ("captured_files", "node"),
    ("discord_nodes", "node"),
    ("heads", "released_by"),
    ("nodes", "id"),
    ("session_totals", "node"),
    ("settings", "node"),
    ("usage", "node"),
    ("workspace_bundles", "handover_node"),
    ("workspace_bundles", "node"),
    ("writers", "node"),
];

fn listed(client: &mut Client) -> Vec<String> {
    let status = client.call::<Status>(&StatusParams {}).expect("cluster.status");
    status.nodes.into_iter().map(|node| node.name).collect()
}

/// Returns the columns that have the name of a node, without the records.
async fn columns_with(database: &tokio_postgres::Client, node: &str) -> Vec<String> {
    let sql = "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c
         JOIN information_schema.tables t USING (table_schema, table_name)
         WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.data_type = 'text'";
    let mut found = Vec::new();
    for row in database.query(sql, &[]).await.expect("the columns") {
        let (table, column): (String, String) = (row.get(0), row.get(1));
        let has = format!("SELECT EXISTS (SELECT FROM {table} WHERE {column} = $1)");
        if !RECORDS.contains(&(&table, &column)) && database.query_one(&has, &[&node]).await.expect("a row").get(0) {
            found.push(format!("{table}.{column}"));
        }
    }
    found.sort();
    found
}

async fn count_sessions(database: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT sum(sessions)::bigint FROM session_totals";
    database.query_one(sql, &[]).await.expect("a row").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_is_forgotten_with_all_that_only_its_machine_needs() {
    let Some(database) = Database::create().await.expect("a database") else { return };
    let cluster = Cluster::on(database.url());
    let homes = ["node-a", "node-b", "node-c"].map(|name| cluster.node(name));
    let [a, b, c] = start_all(&homes);
    let rows = database.connect().await.expect("a connection");
    let (mut client, mut other) = (a.client(), b.client());
    other.init("x");
    other.append("x", "one");
    other.save("x", "kept");
    other.append("x", "two");
    other.init("kept");
    let last_event = other.events(0).last().expect("an event").seq;
    chorusctl(&homes[1], ["agent", "use", "x"]).expect_success();
    let forget = |node: &str| chorusctl(&homes[0], ["cluster", "forget", node]);
    for (node, what) in
        [("node-b", "the node node-b is running, and has 2 agents"), ("node-a", "is the one that answers")]
    {
        let refused = forget(node);
        assert!(refused.expect_failure_with_hint(exit::CONFLICT.into()).contains(what), "{}", refused.stderr);
    }
    forget("nowhere").expect_failure_with_hint(exit::NOT_FOUND.into());
    let had = columns_with(&rows, "node-b").await;
    for column in ["events.node", "heads.owner_node"] {
        assert!(had.iter().any(|found| found == column), "{column}: {had:?}");
    }
    drop(other);
    b.kill9();
    // Its heartbeat may be fresh: it could be a process that is slow.
    forget("node-b").expect_failure_with_hint(exit::CONFLICT.into());
    let sessions = count_sessions(&rows).await;
    let text = wait_until("the silence of the node", DEADLINE * 2, || {
        let forgotten = forget("node-b");
        (forgotten.status == 0).then_some(forgotten.stdout)
    });
    assert_eq!(text, "forgot node-b; it had 2 agents, which other nodes take on when they are needed\n");
    assert_eq!(listed(&mut client), ["node-a", "node-c"]);
    assert_eq!(columns_with(&rows, "node-b").await, Vec::<String>::new());
    assert_eq!((count_sessions(&rows).await, sessions), (1, 1));
    forget("node-b").expect_failure_with_hint(exit::NOT_FOUND.into());
    // Its agent is whole, at whoever is asked.
    assert_eq!(try_append(&mut c.client(), "x", "three").expect("an append"), 3);
    assert_eq!(client.message_texts("x"), ["one", "two", "three"]);
    assert_eq!((client.history("x").len(), client.agent_status("x").node.as_deref()), (1, Some("node-c")));
    chorusctl(&homes[0], ["audit", "verify"]).expect_success();
    // A node that has stopped in order is forgotten at once, and one that starts again is there again.
    assert!(c.terminate().success());
    assert_eq!(forget("node-c").expect_success(), "forgot node-c\n");
    let b = Daemon::start(&homes[1]);
    assert_eq!(listed(&mut client), ["node-a", "node-b"]);
    let status = client.call::<Status>(&StatusParams {}).expect("cluster.status");
    assert_eq!(status.nodes[1].boot, 3, "a boot number is used once");
    assert_eq!(try_append(&mut b.client(), "x", "four").expect("an append"), 4);
    // What nobody has claimed since is at the node again, with its settings, and its events are numbered on.
    let again = b.client().agent_status("kept");
    assert_eq!(again.node.as_deref(), Some("node-b"));
    let settings = "SELECT count(*) FROM settings WHERE node = 'node-b' AND key = 'chosen_agent'";
    assert_eq!(rows.query_one(settings, &[]).await.expect("a row").get::<_, i64>(0), 1);
    assert!(b.client().events(0).iter().all(|event| event.seq > last_event), "numbers are used once");
}

#[test]
fn a_process_that_was_paused_while_its_node_was_forgotten_ends_and_writes_nothing() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, mut b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    other.init("x");
    other.append("x", "one");
    process::signal(b.pid, Signal::STOP);
    wait_until("the silence of the node", DEADLINE * 2, || {
        (chorusctl(&homes[0], ["cluster", "forget", "b"]).status == 0).then_some(())
    });
    // Sent before it runs again.
    let late = std::thread::spawn(move || try_append(&mut other, "x", "late").is_ok());
    assert_eq!(client.message_texts("x"), ["one"]);
    process::signal(b.pid, Signal::CONT);
    assert!(!b.wait().success());
    let log = b.read_log();
    assert!(log.contains("was forgotten while it was silent"), "{log}");
    assert!(!late.join().expect("a thread"), "an append of a node that was forgotten");
    assert_eq!(client.message_texts("x"), ["one"]);
    assert_eq!(listed(&mut client), ["a"]);
}
