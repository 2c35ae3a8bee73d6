//! Drains that meet running turns, are undone, leave a node alone, or give agents to nodes that cannot take them on.

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::cluster::NodeState;
use chorus_proto::methods::trash;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, wait_until};

use super::drain::{drain, expect_nodes, nodes, send, undo};
use super::{Cluster, start_all};

/// More than move at a time.
const TURNS: usize = 18;

#[test]
fn idle_agents_do_not_wait_for_turns_and_a_drain_can_be_undone() {
    let Some(cluster) = Cluster::create() else { return };
    let model = ModelServer::start();
    let config = format!("stop_timeout = \"60s\"\n{}", model.config_toml());
    let homes = [cluster.node_with("a", &config), cluster.node_with("b", &config)];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    let busy: Vec<String> = (0..TURNS).map(|n| format!("busy-{n}")).collect();
    busy.iter().for_each(|name| client.init(name));
    client.init("idle");
    let replies: Vec<_> = busy
        .iter()
        .map(|name| {
            model.anthropic().queue(Response::text(["Hi"]).gate("go").then_text("!"));
            send(&homes[0], name)
        })
        .collect();
    for name in &busy {
        wait_until("the turn", DEADLINE, || client.agent_status(name).turn.map(drop));
    }
    let mut third = a.client();
    third.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    let draining = std::thread::spawn(move || drain(&mut third, None).expect("cluster.drain"));
    wait_until("the idle agent", DEADLINE, || (other.agent_status("idle").node.as_deref() == Some("b")).then_some(()));
    assert!(!draining.is_finished());
    undo(&mut client, None);
    let drained = draining.join().expect("a thread");
    assert_eq!((drained.draining, drained.moved, drained.left.len()), (false, 1, TURNS), "{drained:?}");
    assert_eq!(drained.left[0].reason, "the drain was undone");
    assert_eq!(nodes(&mut other)[0].1, NodeState::Running);
    model.open_gate("go");
    for reply in replies {
        assert_eq!(reply.join().expect("a thread").expect("a reply"), "Hi!");
    }
    assert_eq!(client.agent_status("busy-0").node.as_deref(), Some("a"));
}

#[test]
fn an_agent_comes_back_from_the_trash_of_a_node_that_drains() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, _b] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    client.append("x", "one");
    client.call::<Destroy>(&DestroyParams { name: "x".into(), ..Default::default() }).expect("agent.destroy");
    drain(&mut client, None).expect("cluster.drain");
    client.call::<trash::Restore>(&trash::RestoreParams { id: "x".into() }).expect("trash.restore");
    assert_eq!(client.agent_status("x").node.as_deref(), Some("a"));
    client.append("x", "two");
    // The next drain moves it.
    assert_eq!(drain(&mut client, None).expect("cluster.drain").moved, 1);
    assert_eq!(client.message_texts("x"), ["two"]);
    assert_eq!(client.agent_status("x").node.as_deref(), Some("b"));
}

#[test]
fn an_agent_that_a_node_cannot_take_on_goes_to_another_one() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b"), cluster.node("c")];
    let [a, b, c] = start_all(&homes);
    let mut client = a.client();
    c.client().init("y");
    client.init("x");
    client.append("x", "one");
    // Another agent is in its place.
    let dir = homes[1].path.join("agents/x");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join("agent.json"), "{\"id\": \"00000000-0000-4000-8000-000000000001\"}").expect("a file");
    // It has the fewest agents.
    assert_eq!(drain(&mut client, None).expect("cluster.drain").moved, 1);
    let expected = [("a", NodeState::Draining, 0), ("b", NodeState::Running, 0), ("c", NodeState::Running, 2)];
    expect_nodes(&mut client, &expected);
    assert_eq!(b.client().message_texts("x"), ["one"]);
    assert_eq!(client.agent_status("x").node.as_deref(), Some("c"));
}
