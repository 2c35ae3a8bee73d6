//! Nodes that run, and that another one cannot connect to.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::cluster::{DrainResult, NodeState};
use chorus_tests::certificates::Authority;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use super::drain::{drain, expect_nodes, undo};
use super::{Cluster, start_all, try_append};

/// Changes values of the table `[cluster]`.
fn change(home: &Home, values: &[(&str, String)]) {
    let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
    let (before, table) = config.split_once("[cluster]\n").expect("the table");
    let lines = table.lines().map(|line| match values.iter().find(|(key, _)| line.starts_with(&format!("{key} = "))) {
        Some((key, value)) => format!("{key} = {value:?}\n"),
        None => format!("{line}\n"),
    });
    let table: String = lines.collect();
    home.write_config(&format!("{before}[cluster]\n{table}"));
}

/// Makes a node whose certificate is of another authority, which it trusts.
fn foreign_node(cluster: &Cluster, name: &str) -> Home {
    let home = cluster.node(name);
    let authority = Authority::create(&cluster.files.path().join("other"), "cluster");
    let [cert, key] = ["foreign.crt", "foreign.key"].map(|file| cluster.files.path().join(file));
    let names = format!("subjectAltName=IP:127.0.0.1,URI:chorus:node:{name}\nbasicConstraints=critical,CA:FALSE\n");
    authority.sign_extensions(&names, -1..90, &cert, &key);
    let files = [("ca", authority.certificate()), ("cert", cert), ("key", key)];
    change(&home, &files.map(|(key, path)| (key, path.display().to_string())));
    home
}

/// Makes a node that advertises a host that nobody can look up.
fn unknown_node(cluster: &Cluster, name: &str) -> Home {
    let home = cluster.node(name);
    let [cert, key] = ["unknown.crt", "unknown.key"].map(|file| cluster.files.path().join(file));
    let names =
        format!("subjectAltName=DNS:nowhere.invalid,URI:chorus:node:{name}\nbasicConstraints=critical,CA:FALSE\n");
    cluster.authority.sign_extensions(&names, -1..90, &cert, &key);
    let files = [("cert", cert), ("key", key)].map(|(key, path)| (key, path.display().to_string()));
    change(&home, &files);
    change(&home, &[("advertise", "nowhere.invalid:7700".to_owned())]);
    home
}

/// Returns `reachable` and `problem` of a node, as another one says.
fn reach(home: &Home, node: &str) -> (Option<bool>, String) {
    let listed = chorusctl(home, ["cluster", "--json"]).expect_json();
    let nodes = listed["nodes"].as_array().expect("a list");
    let found = nodes.iter().find(|found| found["name"] == node).expect("the node");
    (found.get("reachable").and_then(Value::as_bool), found["problem"].as_str().unwrap_or_default().to_owned())
}

fn unreachable_of(drained: &DrainResult) -> Vec<(&str, &str)> {
    drained.unreachable.iter().map(|node| (&*node.node, &*node.problem)).collect()
}

#[test]
fn a_node_that_cannot_be_connected_to_is_named_and_gets_no_agents() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), foreign_node(&cluster, "b"), unknown_node(&cluster, "c")];
    let [a, b, c] = start_all(&homes);
    let (mut client, mut foreign) = (a.client(), b.client());
    for name in ["x", "y"] {
        client.init(name);
        client.append(name, "one");
    }
    let untrusted = "its certificate is refused: it is signed by an authority that is not trusted";
    assert_eq!(reach(&homes[0], "a"), (None, String::new()));
    assert_eq!(reach(&homes[0], "b"), (Some(false), untrusted.to_owned()));
    assert_eq!(reach(&homes[0], "c"), (Some(false), "the host nowhere.invalid has no address".to_owned()));
    assert_eq!(reach(&homes[1], "a"), (Some(false), untrusted.to_owned()));
    // It reaches others, and is not reached by them.
    assert_eq!(reach(&homes[2], "a"), (Some(true), String::new()));
    let shown = chorusctl(&homes[0], ["cluster"]);
    let rows: Vec<Vec<&str>> = shown.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[1][2], rows[2][1], rows[3][1]), ("running", "unreachable", "unreachable"), "{}", shown.stdout);
    assert!(shown.stdout.contains(&format!("\nb is unreachable from a: {untrusted}\n")), "{}", shown.stdout);
    assert!(shown.stderr.contains("hint: all nodes need the same ca.pem"), "{}", shown.stderr);
    // Nobody else can have the agents, so they stay.
    let refused = chorusctl(&homes[0], ["cluster", "drain"]);
    assert!(refused.stderr.contains("no node that takes agents can be reached from here"), "{}", refused.stderr);
    assert!(refused.stderr.contains(untrusted) && refused.stderr.contains("hint: "), "{}", refused.stderr);
    assert_eq!(expect_error_kind(drain(&mut client, None)), ErrorKind::Conflict);
    let [running, draining] = [NodeState::Running, NodeState::Draining];
    expect_nodes(&mut client, &[("a", running, 2), ("b", running, 0), ("c", running, 0)]);
    let home = cluster.node("d");
    let d = Daemon::start(&home);
    let drained = drain(&mut client, None).expect("cluster.drain");
    assert_eq!(drained.moved, 2);
    assert_eq!(unreachable_of(&drained), [("b", untrusted), ("c", "the host nowhere.invalid has no address")]);
    expect_nodes(&mut client, &[("a", draining, 0), ("b", running, 0), ("c", running, 0), ("d", running, 2)]);
    assert_eq!(try_append(&mut client, "x", "two").expect("an append"), 2);
    undo(&mut client, None);
    let said = chorusctl(&homes[0], ["cluster", "drain", "d"]);
    assert!(
        said.stderr.contains(&format!("b got no agents, because d does not reach it: {untrusted}")),
        "{}",
        said.stderr
    );
    expect_nodes(&mut client, &[("a", running, 2), ("b", running, 0), ("c", running, 0), ("d", draining, 0)]);
    assert!(d.terminate().success());
    // A stop gives them up: the next node that is asked has them.
    drop(client);
    assert!(a.terminate().success());
    assert_eq!(foreign.message_texts("x"), ["one", "two"]);
    assert_eq!(foreign.agent_status("x").node.as_deref(), Some("b"));
    assert_eq!(c.client().message_texts("y"), ["one"]);
}
