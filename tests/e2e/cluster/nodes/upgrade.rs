//! Nodes of this version next to one of the next, which has changed the schema.

use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_store_postgres::DatabaseUrl;
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;

use super::{Cluster, start_all, try_append};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_when_a_newer_version_has_changed_the_schema_and_is_refused_at_its_next_start() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    other.init("y");
    client.append("x", "one");
    // What the next version would do as the node b.
    let next = DatabaseUrl::parse(&cluster.url).expect("a URL").connect().await.expect("a connection");
    next.batch_execute(
        "ALTER TABLE nodes ADD COLUMN later text; ALTER TABLE heads ADD COLUMN later bigint NOT NULL DEFAULT 0;
         ALTER TABLE contexts ADD COLUMN later bigint NOT NULL DEFAULT 0; CREATE TABLE later (id bigint PRIMARY KEY);
         INSERT INTO migrations SELECT max(number) + 1 FROM migrations;
         UPDATE nodes SET version = '99.0.0' WHERE id = 'b'",
    )
    .await
    .expect("a migration");
    for n in 0..5 {
        assert_eq!(try_append(&mut other, "x", &format!("b{n}")).expect("an append"), n + 2);
        try_append(&mut client, "y", &format!("a{n}")).expect("an append");
    }
    client.init("z");
    let checks = client.call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
    let versions = checks.iter().find(|check| check.name == "versions").expect("a check of versions");
    assert!(versions.text.ends_with("and b another one"), "{versions:?}");
    // It can be drained for its own upgrade, and started again only with that.
    client.call::<chorus_proto::methods::cluster::Drain>(&Default::default()).expect("cluster.drain");
    assert_eq!(other.agent_status("x").node.as_deref(), Some("b"));
    assert_eq!(other.message_texts("x").len(), 6);
    drop(client);
    assert!(a.terminate().success());
    let (status, said) =
        Daemon::try_start(&homes[0], homes[0].command(homes[0].bins.chorusd)).expect_err("an older daemon is refused");
    assert!(!status.success());
    assert!(said.contains("of the schema, and this chorusd knows"), "{said}");
    assert_eq!(other.message_texts("x").len(), 6);
}
