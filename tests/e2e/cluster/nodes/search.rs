//! A search through all nodes, each of which has the index of its own agents.

use chorus_proto::methods::search::{Search, SearchParams, SearchResult};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, wait_until};

use super::{Cluster, start_all};

fn search(client: &mut Client, agent: Option<&str>) -> SearchResult {
    let params = SearchParams {
        agent: agent.map(Into::into),
        all_agents: agent.is_none(),
        query: "lighthouse".into(),
        ..Default::default()
    };
    client.call::<Search>(&params).expect("a search")
}

fn agents(found: &SearchResult) -> Vec<&str> {
    let mut names: Vec<&str> = found.hits.iter().map(|hit| &*hit.agent_name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_search_of_all_agents_asks_all_nodes() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = ["a", "b"].map(|name| cluster.node_at(name, &cluster.url, "[search]\nindex = true\n"));
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    a.init("x");
    b.init("y");
    a.append("x", "the lighthouse of x");
    b.append("y", "the lighthouse of y");
    for client in [&mut a, &mut b] {
        let found = wait_until("hits of both nodes", DEADLINE, || {
            Some(search(client, None)).filter(|found| found.hits.len() == 2)
        });
        assert_eq!(agents(&found), ["x", "y"]);
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }
    // Without a name and a default it is the same, though each node has one agent only.
    for client in [&mut a, &mut b] {
        let params = SearchParams { query: "lighthouse".into(), ..Default::default() };
        assert_eq!(agents(&client.call::<Search>(&params).expect("a search")), ["x", "y"]);
    }
    // One agent is asked for where it is.
    assert_eq!(agents(&search(&mut a, Some("y"))), ["y"]);
    assert_eq!(agents(&search(&mut b, Some("x"))), ["x"]);
}

#[test]
fn a_project_is_searched_though_this_node_has_no_agent_of_it() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = ["a", "b"].map(|name| cluster.node_at(name, &cluster.url, "[search]\nindex = true\n"));
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    a.init("x");
    b.init("y");
    chorusctl(&homes[0], ["agent", "config", "x", "project", "harbour"]).expect_success();
    a.append("x", "the lighthouse of x");
    let mut search = |project: &str| {
        let params = SearchParams {
            all_agents: true,
            query: "lighthouse".into(),
            project: Some(project.into()),
            ..Default::default()
        };
        b.call::<Search>(&params)
    };
    let found = wait_until("the hit", DEADLINE, || search("harbour").ok().filter(|found| found.hits.len() == 1));
    assert_eq!((agents(&found), found.warnings.len()), (vec!["x"], 0));
    assert_eq!(expect_error_kind(search("nowhere")), ErrorKind::NotFound);
}

#[test]
fn agents_that_no_node_has_are_missed_by_name_and_not_silently() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = ["a", "b"].map(|name| cluster.node_at(name, &cluster.url, "[search]\nindex = true\n"));
    let [a, b] = start_all(&homes);
    a.client().init("x");
    a.client().append("x", "the lighthouse of x");
    let mut client = b.client();
    let is_whole = |found: &SearchResult| found.warnings.is_empty() && found.hits.len() == 1;
    wait_until("the hit of the other node", DEADLINE, || is_whole(&search(&mut client, None)).then_some(()));
    a.kill9();
    let missing = "1 agent not searched, because no node has them now: name one to have it searched";
    // Before, the node that is gone was asked in vain.
    let found = wait_until("the agent to be without a node", DEADLINE, || {
        Some(search(&mut client, None)).filter(|found| found.warnings == [missing])
    });
    assert_eq!((found.hits.len(), found.index.complete), (0, false));
    // Naming it lets this node take it on.
    wait_until("the agent's own hit", DEADLINE, || (agents(&search(&mut client, Some("x"))) == ["x"]).then_some(()));
    wait_until("the hit", DEADLINE, || is_whole(&search(&mut client, None)).then_some(()));
}
