//! Background tasks and questions of agents, asked about on other nodes and left behind by nodes that end.

use std::time::Duration;

use chorus_proto::error::exit;
use chorus_proto::methods::approvals::{Approve, ApproveParams, List as ListApprovals, ListParams as ApprovalParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::methods::tasks::{Logs, LogsParams, Show, ShowParams, Stop, StopParams, TaskStatus};
use chorus_proto::{Client, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, process, wait_until};
use serde_json::json;

use super::{Cluster, start_all};
use crate::approvals;

fn send(client: &mut Client, text: &str) -> String {
    let params = SendParams { agent: Some("x".into()), text: text.into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn").reply
}

/// Lets the agent `x` start a command in the background; returns the id of the task.
fn start_task(models: &ModelServer, client: &mut Client, command: &str) -> String {
    let params = json!({"command": command, "background": true});
    models.anthropic().queue(Response::tool_call("c1", "bash", &params));
    models.anthropic().queue(Response::text(["It is started."]));
    assert_eq!(send(client, "Start it."), "It is started.");
    let result = client.messages("x").into_iter().rfind(|message| message.role == Role::ToolResult).expect("a result");
    let id = result.content.strip_prefix("task ").and_then(|rest| rest.split(' ').next());
    id.unwrap_or_else(|| panic!("{}", result.content)).to_owned()
}

fn status(client: &mut Client, id: &str) -> (TaskStatus, u32) {
    let task = client.call::<Show>(&ShowParams { id: id.into() }).expect("tasks.show").task;
    (task.status, task.pid)
}

/// Returns the processes with this command line, whose arguments end with a zero.
fn pids_of(command: &[u8]) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == command)).collect()
}

/// A proxy in front of the database, with the URL through it. The proxy ends with the runtime.
pub(super) fn cut_off(cluster: &Cluster) -> (tokio::runtime::Runtime, FaultProxy, String) {
    let port = cluster.url.split(':').nth(2).and_then(|rest| rest.split('/').next()?.parse().ok());
    let port: u16 = port.expect("the port in the URL");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let proxy = runtime.block_on(FaultProxy::start(port)).expect("a proxy");
    let through = cluster.url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
    (runtime, proxy, through)
}

fn system_texts(client: &mut Client) -> Vec<String> {
    let all = client.messages("x").into_iter().filter(|message| message.role == Role::System);
    all.map(|message| message.content).collect()
}

#[test]
fn tasks_and_questions_of_another_node_are_reached() {
    let Some(cluster) = Cluster::create() else { return };
    let models = ModelServer::start();
    let homes = ["a", "b"].map(|name| cluster.node_at(name, &cluster.url, &approvals::config(&models, "")));
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    approvals::agent(&mut a, "x");
    let id = start_task(&models, &mut a, "echo said; sleep 600");
    let logs = wait_until("its output", DEADLINE, || {
        let page = b.call::<Logs>(&LogsParams { id: id.clone(), ..Default::default() }).expect("tasks.logs");
        (!page.data.is_empty()).then_some(page.data)
    });
    assert_eq!(logs, "said\n");
    assert!(b.call::<Stop>(&StopParams { id: id.clone() }).expect("tasks.stop").stopped);
    assert_eq!(status(&mut a, &id).0, TaskStatus::Stopped);

    models.anthropic().queue(approvals::calls_of(1));
    models.anthropic().queue(Response::text(["Done."]));
    let turn = std::thread::spawn(move || send(&mut a, "Which are there?"));
    let asked = wait_until("the question", DEADLINE, || {
        let open = b.call::<ListApprovals>(&ApprovalParams::default()).expect("approvals.list").approvals;
        open.into_iter().next()
    });
    b.call::<Approve>(&ApproveParams { id: asked.id, ..Default::default() }).expect("an approval there");
    assert_eq!(turn.join().expect("the client"), "Done.");
}

#[test]
fn what_a_node_leaves_behind_is_lost_and_denied_and_the_agent_hears_of_it() {
    let Some(cluster) = Cluster::create() else { return };
    let models = ModelServer::start();
    let homes = ["a", "b"].map(|name| cluster.node_at(name, &cluster.url, &approvals::config(&models, "")));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    approvals::agent(&mut client, "x");
    let id = start_task(&models, &mut client, "sleep 600");
    let pid = status(&mut client, &id).1;
    models.anthropic().queue(approvals::calls_of(1));
    let mut asking = a.client();
    std::thread::spawn(move || {
        let params = SendParams { agent: Some("x".into()), text: "Which?".into(), ..Default::default() };
        drop(asking.call::<Send>(&params));
    });
    let open = |client: &mut Client| {
        client.call::<ListApprovals>(&ApprovalParams::default()).expect("approvals.list").approvals
    };
    wait_until("the question", DEADLINE, || (open(&mut client).len() == 1).then_some(()));
    a.kill9();
    other.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    assert!(!other.message_texts("x").is_empty());
    wait_until("the end of the task", DEADLINE, || (status(&mut other, &id).0 == TaskStatus::Lost).then_some(()));
    wait_until("the word about it", DEADLINE, || {
        system_texts(&mut other).iter().any(|text| text.contains("was lost")).then_some(())
    });
    wait_until("the end of the question", DEADLINE, || open(&mut other).is_empty().then_some(()));
    // Both nodes are on one machine, so the new owner can end what the former one has left.
    wait_until("the end of its processes", DEADLINE, || (!process::is_running(pid)).then_some(()));
}

#[test]
fn a_node_without_its_database_ends_turns_and_tools_before_another_may_begin() {
    let Some(cluster) = Cluster::create() else { return };
    let (_runtime, proxy, through) = cut_off(&cluster);
    let models = ModelServer::start();
    let config = models.config_toml();
    let homes = [cluster.node_at("a", &through, &config), cluster.node_at("b", &cluster.url, &config)];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    approvals::agent_of(&mut client, "x", "open");
    let id = start_task(&models, &mut client, "sleep 600");
    let pid = status(&mut client, &id).1;
    models.anthropic().queue(Response::tool_call("c2", "bash", &json!({"command": "touch begun; sleep 601"})));
    std::thread::spawn(move || {
        let params = SendParams { agent: Some("x".into()), text: "Wait.".into(), ..Default::default() };
        drop(client.call::<Send>(&params));
    });
    let begun = homes[0].agent_dir("x").join("workspace/begun");
    wait_until("the command", DEADLINE, || begun.exists().then_some(()));
    let sleeping = || pids_of(b"sleep\x00601\x00");
    wait_until("its process", DEADLINE, || (!sleeping().is_empty()).then_some(()));
    proxy.fall_silent();
    let cut = std::time::Instant::now();
    wait_until("the end of both commands", DEADLINE, || {
        (sleeping().is_empty() && !process::is_running(pid)).then_some(())
    });
    let took = cut.elapsed();
    assert!(took > Duration::from_secs(3) && took < Duration::from_secs(12), "{took:?}");
    other.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    assert!(!other.message_texts("x").is_empty(), "the other node has it");
    // It answered at its port, so it was not taken for dead before its heartbeat was stale.
    let log = b.read_log();
    assert!(log.contains("has fallen silent") && !log.contains("is cut off"), "{log}");
    proxy.heal();
}

#[test]
fn what_ended_without_the_database_is_recorded_once_it_is_back() {
    let Some(cluster) = Cluster::create() else { return };
    let (_runtime, proxy, through) = cut_off(&cluster);
    let models = ModelServer::start();
    let homes = [cluster.node_at("a", &through, &models.config_toml())];
    let [daemon] = start_all(&homes);
    let mut client = daemon.client();
    approvals::agent_of(&mut client, "x", "open");
    let id = start_task(&models, &mut client, "sleep 602");
    let pid = status(&mut client, &id).1;
    proxy.fall_silent();
    wait_until("the end of the command", DEADLINE, || (!process::is_running(pid)).then_some(()));
    proxy.cut();
    proxy.heal();
    // Until it is reached again, requests fail.
    wait_until("the end of the task", DEADLINE, || {
        let shown = client.call::<Show>(&ShowParams { id: id.clone() }).ok()?;
        (shown.task.status != TaskStatus::Running).then_some(())
    });
    wait_until("the word about it", DEADLINE, || {
        system_texts(&mut client).iter().any(|text| text.starts_with("Background task")).then_some(())
    });
}

/// The trash is of a machine, and what is in it belongs to agents that move.
#[test]
fn what_is_in_the_trash_of_a_node_comes_back_once_its_agent_has() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, _b] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    client.append("x", "one");
    let name = client.save("x", "first").header.session_id;
    chorusctl(&homes[0], ["memory", "add", "The lighthouse is white."]).expect_success();
    let listed = chorusctl(&homes[0], ["memory", "list", "--json"]).expect_json();
    chorusctl(&homes[0], ["memory", "remove", listed["entries"][0]["id"].as_str().expect("an id")]).expect_success();
    chorusctl(&homes[0], ["rm", &name]).expect_success();
    let trashed = chorusctl(&homes[0], ["trash", "list", "--json"]).expect_json();
    let items = trashed["entries"].as_array().expect("a list").clone();
    assert_eq!(items.len(), 2, "{trashed}");
    chorusctl(&homes[0], ["cluster", "drain"]).expect_success();
    for item in &items {
        let refused = chorusctl(&homes[0], ["trash", "restore", item["id"].as_str().expect("an id")]);
        let text = refused.expect_failure_with_hint(exit::CONFLICT.into());
        assert!(text.contains("its agent is on the node b, and the trash is here"), "{text}");
    }
    chorusctl(&homes[0], ["cluster", "drain", "--undo"]).expect_success();
    chorusctl(&homes[0], ["cluster", "drain", "b"]).expect_success();
    for item in &items {
        chorusctl(&homes[0], ["trash", "restore", item["id"].as_str().expect("an id")]).expect_success();
    }
    assert_eq!(client.history("x").len(), 1);
}
