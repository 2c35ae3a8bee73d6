//! `chorusctl cluster`, and what `status`, `agent list` and `doctor` say of nodes.

use chorus_proto::error::exit;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, home, wait_until};

use super::{Cluster, start_all};

#[test]
fn the_list_of_nodes_says_who_has_what() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    client.init("y");
    client.append("y", "one");
    b.client().init("z");
    // With the second heartbeat of each.
    let listed = wait_until("the load of both", DEADLINE, || {
        let listed = chorusctl(&homes[1], ["cluster", "--json"]).expect_json();
        let nodes = listed["nodes"].as_array().expect("a list");
        nodes.iter().all(|node| node["load_percent"].is_u64()).then_some(listed)
    });
    assert_eq!(listed["node"], "b");
    let facts = |node: usize, key: &str| listed["nodes"][node][key].clone();
    for (node, name, agents, contexts) in [(0, "a", 2, 1), (1, "b", 1, 0)] {
        assert_eq!(facts(node, "name"), name);
        assert_eq!(facts(node, "state"), "running");
        assert_eq!((facts(node, "agents"), facts(node, "contexts")), (agents.into(), contexts.into()));
        assert_eq!(facts(node, "boot"), 1);
        assert!(facts(node, "heartbeat_ms").as_u64().is_some_and(|age| age < 8_000), "{listed}");
        assert!(facts(node, "load_percent").is_u64() && facts(node, "lag_ms").is_u64(), "{listed}");
        assert!(facts(node, "address").as_str().is_some_and(|address| address.starts_with("127.0.0.1:")));
    }
    let text = chorusctl(&homes[1], ["cluster", "status"]).expect_success();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NODE", "STATE", "AGENTS", "LIVE", "LOAD", "LAG", "BEAT", "VERSION", "ADDRESS"]);
    assert_eq!(rows[1][..4], ["a", "running", "2", "1"], "{text}");
    assert_eq!(rows[2][..5], ["*", "b", "running", "1", "0"], "{text}");
    // Each agent says where it is, whichever node is asked.
    let agents = chorusctl(&homes[0], ["agent", "list", "--json"]).expect_json();
    let places: Vec<_> =
        agents["agents"].as_array().expect("a list").iter().map(|agent| agent["node"].clone()).collect();
    assert_eq!(places, ["a", "a", "b"]);
    for words in [["agent", "list"].as_slice(), &["status"]] {
        let text = chorusctl(&homes[0], words).expect_success();
        assert!(text.contains("NODE"), "{text}");
    }
    // What an agent does is known to its node, and the others ask that one.
    for home in &homes {
        for words in [&["agent", "list", "--json"][..], &["status", "--json"]] {
            let listed = chorusctl(home, words).expect_json();
            let states: Vec<_> =
                listed["agents"].as_array().expect("a list").iter().map(|agent| agent["state"].clone()).collect();
            assert_eq!(states, ["idle", "active", "idle"], "{listed}");
            assert_eq!(listed["agents"][1]["context"]["messages"], 1, "{listed}");
        }
        // In text, the active ones come first.
        let text = chorusctl(home, ["status"]).expect_success();
        let agents: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(agents.ends_with(&["y", "x", "z"]), "{text}");
    }
    let own = chorusctl(&homes[0], ["agent", "list", "--node", "b", "--json"]).expect_json();
    assert_eq!(
        own["agents"].as_array().map(|agents| agents.iter().map(|agent| agent["name"].clone()).collect()),
        Some(vec!["z".into()])
    );
    let text = chorusctl(&homes[0], ["cluster", "drain", "b"]).expect_success();
    assert_eq!(text, "b takes no more agents; moved 1 agent\n");
    assert_eq!(chorusctl(&homes[1], ["cluster", "drain", "--undo"]).expect_success(), "b takes agents again\n");
    chorusctl(&homes[1], ["cluster", "drain", "nowhere"]).expect_failure_with_hint(exit::NOT_FOUND.into());
}

#[test]
fn agents_of_a_node_that_does_not_answer_are_unreachable() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    a.client().init("x");
    b.client().init("y");
    b.client().append("y", "one");
    b.kill9();
    for words in [["agent", "list"].as_slice(), &["status"]] {
        let text = chorusctl(&homes[0], words).expect_success();
        let row = |agent: &str| text.lines().find(|line| line.trim_start().starts_with(agent)).unwrap_or_default();
        assert!(row("y ").contains("unreachable") && row("x ").contains("idle"), "{text}");
    }
    let listed = chorusctl(&homes[0], ["agent", "list", "--json"]).expect_json();
    assert_eq!((&listed["agents"][0].get("unreachable"), &listed["agents"][1]["unreachable"]), (&None, &true.into()));
    let refused = chorusctl(&homes[0], ["agent", "list", "--node", "nowhere"]);
    assert!(
        refused.expect_failure(exit::NOT_FOUND.into()).contains("no node \"nowhere\" in the cluster"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_agent_that_no_node_has_is_unclaimed_until_somebody_asks_for_it() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let a = Daemon::start(&homes[0]);
    a.client().init("x");
    // Nobody else is there to have it.
    assert!(a.terminate().success());
    let b = Daemon::start(&homes[1]);
    for words in [["agent", "list"].as_slice(), &["status"]] {
        let text = chorusctl(&homes[1], words).expect_success();
        let row = text.lines().find(|line| line.trim_start().starts_with("x ")).unwrap_or_default();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert!(text.contains("NODE") && row[..3] == ["x", "-", "unclaimed"], "{text}");
    }
    let unclaimed = |words: &[&str]| {
        let listed = chorusctl(&homes[1], words).expect_json();
        let agent = &listed["agents"][0];
        (agent.get("node").cloned(), agent.get("unclaimed").cloned())
    };
    for words in [["agent", "list", "--json"], ["status", "--json", "--quiet"]] {
        assert_eq!(unclaimed(&words), (None, Some(true.into())));
    }
    let shown = chorusctl(&homes[1], ["agent", "show", "x"]).expect_success();
    let node = shown.lines().find_map(|line| line.trim_start().strip_prefix("node "));
    assert_eq!(node.map(str::trim), Some("b"), "{shown}");
    assert_eq!(unclaimed(&["agent", "list", "--json"]), (Some("b".into()), None));
    // Through another node, it is the node that has it.
    let _a = Daemon::start(&homes[0]);
    let shown = chorusctl(&homes[0], ["agent", "show", "x", "--json"]).expect_json();
    assert_eq!(shown["agent"]["node"], "b", "{shown}");
    drop(b);
}

#[test]
fn a_daemon_alone_says_that_it_has_no_cluster() {
    let home = home!().without_index();
    let mut command = home.command(home.bins.chorusd);
    // Whatever other tests use.
    command.env("CHORUS_STORE_KIND", "sqlite");
    let daemon = Daemon::start_command(&home, command);
    daemon.client().init("x");
    for words in [["cluster"].as_slice(), &["cluster", "drain"]] {
        let refused = chorusctl(&home, words);
        let text = refused.expect_failure_with_hint(exit::FAILED.into());
        assert!(text.contains("this daemon is not in a cluster"), "{text}");
    }
    let agents = chorusctl(&home, ["agent", "list", "--json"]).expect_json();
    assert!(agents["agents"][0].get("node").is_none() && agents["agents"][0].get("unclaimed").is_none(), "{agents}");
    let shown = chorusctl(&home, ["agent", "show", "x", "--json"]).expect_json();
    assert!(shown["agent"].get("node").is_none(), "{shown}");
    let shown = chorusctl(&home, ["agent", "show", "x"]).expect_success();
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("node ")), "{shown}");
    assert!(!chorusctl(&home, ["agent", "list"]).expect_success().contains("NODE"));
}
