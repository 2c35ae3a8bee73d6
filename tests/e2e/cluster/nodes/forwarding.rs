//! Requests to a node that does not have the agent.

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::{CallError, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};

use super::{Cluster, start_all, try_append};

#[test]
fn any_node_answers_for_the_agents_of_all() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    a.init("x");
    b.init("y");
    // Several requests at a time, whose answers come in any order.
    for n in 0..20 {
        assert_eq!(try_append(&mut a, "x", &format!("a{n}")).expect("an append here"), 2 * n + 1);
        assert_eq!(try_append(&mut b, "x", &format!("b{n}")).expect("an append there"), 2 * n + 2);
    }
    assert_eq!(a.message_texts("x"), b.message_texts("x"));
    let saved = b.save("x", "from the other node");
    assert_eq!(a.get_session("x", "latest").0.header.id, saved.header.id);
    assert!(homes[0].agent_dir("x").exists() && !homes[1].agent_dir("x").exists());
    // Names are unique in the cluster.
    let params = InitParams { name: "y".into(), ..Default::default() };
    assert_eq!(expect_error_kind(a.call::<Init>(&params)), ErrorKind::AlreadyExists);
    let names = |client: &mut chorus_proto::Client| {
        let listed = client.call::<chorus_proto::methods::agent::List>(&Default::default()).expect("agent.list");
        listed.agents.into_iter().map(|agent| agent.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut a), ["x", "y"]);
    assert_eq!(names(&mut b), ["x", "y"]);
}

#[test]
fn the_error_of_the_other_node_is_the_clients() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    a.init("x");
    let failure = |client: &mut chorus_proto::Client| {
        let params = chorus_proto::methods::context::RestoreParams {
            agent: Some("x".into()),
            session: "nothing".into(),
            ..Default::default()
        };
        match client.call::<chorus_proto::methods::context::Restore>(&params) {
            Err(CallError::Rpc(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failure(&mut a), failure(&mut b));
}
