//! Schedules of agents whose node ends, and requests about them at another node.

use chorus_proto::Client;
use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_proto::methods::schedule::{
    Add, AddParams, List, ListParams, Pause, PauseParams, Remove, RemoveParams, Resume, ResumeParams, Run, RunOutcome,
    RunParams, Schedule,
};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, wait_until};

use super::{Cluster, start_all};

fn add(client: &mut Client, name: &str, seconds: u64) {
    let params = AddParams {
        agent: Some("x".into()),
        name: name.into(),
        message: "Look.".into(),
        in_seconds: Some(seconds),
        ..Default::default()
    };
    client.call::<Add>(&params).expect("schedule.add");
}

fn find(client: &mut Client, name: &str) -> Option<Schedule> {
    let params = ListParams { all_agents: true, ..Default::default() };
    let listed = client.call::<List>(&params).expect("schedule.list").schedules;
    listed.into_iter().find(|schedule| schedule.name == name)
}

/// Waits until a schedule has run, and returns the number of its messages.
fn messages_of_run(client: &mut Client, name: &str) -> usize {
    let done = wait_until("the run", DEADLINE * 3, || find(client, name).filter(|found| !found.runs.is_empty()));
    assert_eq!(done.runs.iter().map(|run| run.outcome).collect::<Vec<_>>(), [RunOutcome::Ok]);
    client.messages_in("x", &format!("schedule-{name}")).len()
}

#[test]
fn a_schedule_runs_once_where_its_agent_is() {
    let Some(cluster) = Cluster::create() else { return };
    let server = ModelServer::start();
    server.anthropic().set_fallback(Response::text(["Done."]));
    let homes = ["a", "b"].map(|name| cluster.node_with(name, &server.config_toml()));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    // Requests find the agent from the other node.
    add(&mut other, "far", 1000);
    let (agent, name) = (Some("x".to_owned()), "far".to_owned());
    let pause = PauseParams { agent: agent.clone(), name: name.clone() };
    assert!(other.call::<Pause>(&pause).expect("schedule.pause").changed);
    let resume = ResumeParams { agent: agent.clone(), name: name.clone() };
    assert!(other.call::<Resume>(&resume).expect("schedule.resume").changed);
    other.call::<Run>(&RunParams { agent: agent.clone(), name: name.clone() }).expect("schedule.run");
    assert_eq!(messages_of_run(&mut other, "far"), 2);
    other.call::<Remove>(&RemoveParams { agent, name }).expect("schedule.remove");
    assert!(find(&mut client, "far").is_none());
    assert_eq!(client.agent_status("x").node.as_deref(), Some("a"));
    add(&mut client, "near", 1);
    assert_eq!(messages_of_run(&mut client, "near"), 2);
    // An agent that moves takes its schedules along.
    add(&mut client, "moved", 4);
    client.call::<Drain>(&DrainParams { node: Some("a".into()), undo: false }).expect("cluster.drain");
    assert_eq!(messages_of_run(&mut other, "moved"), 2);
    assert_eq!(other.agent_status("x").node.as_deref(), Some("b"));
}

#[test]
fn a_schedule_of_a_node_that_was_killed_runs_once_at_another() {
    let Some(cluster) = Cluster::create() else { return };
    let server = ModelServer::start();
    server.anthropic().set_fallback(Response::text(["Done."]));
    let homes = ["a", "b"].map(|name| cluster.node_with(name, &server.config_toml()));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    add(&mut client, "due", 1);
    drop(client);
    a.kill9();
    assert_eq!(messages_of_run(&mut other, "due"), 2);
    assert_eq!(other.agent_status("x").node.as_deref(), Some("b"));
}
