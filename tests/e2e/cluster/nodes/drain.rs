//! Agents that move to another node because theirs is drained or stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::cluster::{Drain, DrainParams, DrainResult, NodeState, Status, StatusParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{CallError, Client, ErrorKind, NewMessage, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait, wait_until};

use super::{Cluster, start_all, try_append};

pub(super) fn drain(client: &mut Client, node: Option<&str>) -> Result<DrainResult, CallError> {
    client.call::<Drain>(&DrainParams { node: node.map(Into::into), undo: false })
}

pub(super) fn undo(client: &mut Client, node: Option<&str>) -> DrainResult {
    client.call::<Drain>(&DrainParams { node: node.map(Into::into), undo: true }).expect("cluster.drain")
}

/// Returns state and number of agents of each node.
pub(super) fn nodes(client: &mut Client) -> Vec<(String, NodeState, u64)> {
    let status = client.call::<Status>(&StatusParams {}).expect("cluster.status");
    status.nodes.into_iter().map(|node| (node.name, node.state, node.agents)).collect()
}

/// Waits until these are the nodes: a successor claims a moment later.
pub(super) fn expect_nodes(client: &mut Client, expected: &[(&str, NodeState, u64)]) {
    wait_until("the agents to be elsewhere", DEADLINE, || {
        let nodes = nodes(client);
        let nodes = nodes.iter().map(|(name, state, agents)| (name.as_str(), *state, *agents));
        nodes.eq(expected.iter().copied()).then_some(())
    });
}

/// A client that appends to an agent all the time, and measures how long the longest answer takes.
pub(super) struct Asker {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(Vec<String>, Duration)>,
}

impl Asker {
    pub(super) fn start(home: &Home, agent: &'static str, prefix: &str) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (ends, mut client) = (over.clone(), Client::connect(&home.socket()).expect("a client"));
        let (prefix, runtime) = (prefix.to_owned(), tokio::runtime::Handle::current());
        let thread = std::thread::spawn(move || {
            let (mut texts, mut longest) = (Vec::new(), Duration::ZERO);
            while !ends.load(Ordering::Relaxed) {
                let (text, begun) = (format!("{prefix}-{}", texts.len()), Instant::now());
                try_append(&mut client, agent, &text).expect("an append while the agent moves");
                longest = longest.max(begun.elapsed());
                texts.push(text);
                runtime.block_on(wait::pause(Duration::from_millis(5)));
            }
            (texts, longest)
        });
        Self { over, thread }
    }

    /// Ends the client. Returns what it has appended.
    #[expect(clippy::print_stdout, reason = "the figure is for the documentation")]
    pub(super) fn end(self, what: &str) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        let (texts, longest) = self.thread.join().expect("the appends");
        println!("{what}: {} appends, the longest took {} ms", texts.len(), longest.as_millis());
        texts
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_agent_moves_while_a_client_asks_for_it() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.init("quiet");
    client.append("quiet", "one");
    client.init("long");
    for part in 0..10 {
        let messages = (0..1_000).map(|n| NewMessage::text(Role::User, format!("{part}-{n}"))).collect();
        client.append_all("long", messages);
    }
    // Its context is not in memory then.
    assert_eq!(drain(&mut client, None).expect("cluster.drain").moved, 3);
    undo(&mut client, None);
    expect_nodes(&mut client, &[("a", NodeState::Running, 0), ("b", NodeState::Running, 3)]);
    assert_eq!(drain(&mut other, None).expect("cluster.drain").moved, 3);
    undo(&mut other, None);
    expect_nodes(&mut client, &[("a", NodeState::Running, 3), ("b", NodeState::Running, 0)]);
    let begun = Instant::now();
    assert_eq!(drain(&mut client, None).expect("cluster.drain").moved, 3);
    let status = other.agent_status("long").context.expect("a live context");
    println!("{} messages that are not in memory: {} ms", status.messages, begun.elapsed().as_millis());
    undo(&mut client, None);
    expect_nodes(&mut client, &[("a", NodeState::Running, 0), ("b", NodeState::Running, 3)]);
    assert_eq!(drain(&mut other, None).expect("cluster.drain").moved, 3);
    undo(&mut other, None);
    expect_nodes(&mut client, &[("a", NodeState::Running, 3), ("b", NodeState::Running, 0)]);
    assert_eq!(client.agent_status("x").node.as_deref(), Some("a"));
    for (through, what) in [(0, "through the node that is drained"), (1, "through the successor")] {
        let asker = Asker::start(&homes[through], "x", &format!("round-{through}"));
        let before = other.message_texts("x").len();
        wait_until("some appends", DEADLINE, || (other.message_texts("x").len() > before + 20).then_some(()));
        let drained = drain(&mut client, None).expect("cluster.drain");
        assert_eq!((drained.node.as_str(), drained.draining, drained.moved), ("a", true, 3), "{drained:?}");
        let before = other.message_texts("x").len();
        wait_until("some more appends", DEADLINE, || (other.message_texts("x").len() > before + 20).then_some(()));
        let texts = asker.end(what);
        assert!(other.message_texts("x").ends_with(&texts), "lost, double or in another order");
        assert_eq!(client.message_texts("x"), other.message_texts("x"));
        for agent in ["x", "quiet"] {
            assert_eq!(client.agent_status(agent).node.as_deref(), Some("b"));
        }
        expect_nodes(&mut client, &[("a", NodeState::Draining, 0), ("b", NodeState::Running, 3)]);
        // What nobody has is not claimed by the node either.
        let new = format!("new-{through}");
        client.init(&new);
        assert_eq!(client.agent_status(&new).node.as_deref(), Some("b"));
        assert!(!undo(&mut client, None).draining);
        assert_eq!(nodes(&mut other)[0].1, NodeState::Running);
        // Back, for the next round.
        assert_eq!(drain(&mut other, None).expect("cluster.drain").moved, 4);
        undo(&mut other, None);
        client.call::<Destroy>(&DestroyParams { name: new, ..Default::default() }).expect("agent.destroy");
    }
    assert_eq!(client.message_texts("quiet"), ["one"]);
}

/// Sends a message in another thread.
pub(super) fn send(home: &Home, agent: &str) -> std::thread::JoinHandle<Result<String, CallError>> {
    let (mut client, agent) = (Client::connect(&home.socket()).expect("a client"), agent.to_owned());
    std::thread::spawn(move || {
        let params = SendParams { agent: Some(agent), text: "hello".into(), ..Default::default() };
        client.call::<Send>(&params).map(|sent| sent.reply)
    })
}

#[test]
fn a_turn_ends_before_its_agent_moves_and_is_cancelled_when_the_time_is_up() {
    let Some(cluster) = Cluster::create() else { return };
    let model = ModelServer::start();
    let config = format!("stop_timeout = \"6s\"\n{}", model.config_toml());
    let homes = [cluster.node_with("a", &config), cluster.node_with("b", &config)];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    model.anthropic().queue(Response::text(["Hi"]).gate("go").then_text("!"));
    let reply = send(&homes[0], "x");
    let in_turn = |client: &mut Client| client.agent_status("x").turn.map(drop);
    wait_until("the turn", DEADLINE, || in_turn(&mut client));
    let mut third = a.client();
    let draining = std::thread::spawn(move || drain(&mut third, None).expect("cluster.drain"));
    wait_until("the drain", DEADLINE, || (nodes(&mut other)[0].1 == NodeState::Draining).then_some(()));
    assert_eq!(client.agent_status("x").node.as_deref(), Some("a"), "it moved in its turn");
    model.open_gate("go");
    assert_eq!(reply.join().expect("a thread").expect("a reply"), "Hi!");
    assert_eq!(draining.join().expect("a thread").moved, 1);
    assert_eq!(other.message_texts("x"), ["hello", "Hi!"]);
    assert_eq!(other.agent_status("x").node.as_deref(), Some("b"));
    // The next one does not end by itself.
    model.anthropic().queue(Response::text(["Well"]).gate("never").then_text("."));
    let reply = send(&homes[1], "x");
    wait_until("the turn", DEADLINE, || in_turn(&mut other));
    undo(&mut client, None);
    assert_eq!(drain(&mut other, None).expect("cluster.drain").moved, 1);
    assert_eq!(expect_error_kind(reply.join().expect("a thread")), ErrorKind::Interrupted);
    assert_eq!(client.agent_status("x").node.as_deref(), Some("a"));
    assert_eq!(client.message_texts("x")[..3], ["hello", "Hi!", "hello"]);
    assert!(client.agent_status("x").turn.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_hands_its_agents_over_first() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.init("quiet");
    client.append("quiet", "one");
    let asker = Asker::start(&homes[1], "x", "message");
    wait_until("some appends", DEADLINE, || (other.message_texts("x").len() > 20).then_some(()));
    drop(client);
    assert!(a.terminate().success());
    // Nobody has asked for the other agent yet.
    expect_nodes(&mut other, &[("a", NodeState::Stopped, 0), ("b", NodeState::Running, 2)]);
    let before = other.message_texts("x").len();
    wait_until("some more appends", DEADLINE, || (other.message_texts("x").len() > before + 20).then_some(()));
    let texts = asker.end("through the successor of a node that stops");
    assert_eq!(other.message_texts("x"), texts);
    assert_eq!(other.message_texts("quiet"), ["one"]);
    // The last node keeps them for its next start.
    drop(other);
    assert!(b.terminate().success());
    let b = Daemon::start(&homes[1]);
    expect_nodes(&mut b.client(), &[("a", NodeState::Stopped, 0), ("b", NodeState::Running, 2)]);
}

#[test]
fn a_node_is_drained_through_another_one_unless_it_is_down() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b"), cluster.node("c")];
    let [a, b, c] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.set_timeout(Some(DEADLINE * 2)).expect("a time-out");
    for name in ["x", "y"] {
        other.init(name);
    }
    let drained = drain(&mut client, Some("b")).expect("cluster.drain");
    assert_eq!((drained.node.as_str(), drained.moved), ("b", 2));
    let fair = [("a", NodeState::Running, 1), ("b", NodeState::Draining, 0), ("c", NodeState::Running, 1)];
    expect_nodes(&mut client, &fair);
    assert_eq!(undo(&mut client, Some("b")).node, "b");
    assert_eq!(expect_error_kind(drain(&mut client, Some("nowhere"))), ErrorKind::NotFound);
    drain(&mut client, Some("c")).expect("cluster.drain");
    c.kill9();
    let down = wait_until("the silence of the node", DEADLINE * 2, || match drain(&mut client, Some("c")) {
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Conflict => Some(error.message),
        _ => None,
    });
    assert!(down.starts_with("the node c is down: no heartbeat for "), "{down}");
    drop(other);
    assert!(b.terminate().success());
    match drain(&mut client, Some("b")) {
        Err(CallError::Rpc(error)) => assert_eq!(error.message, "the node b has stopped"),
        other => panic!("{other:?}"),
    }
    // It is the only one left.
    assert_eq!(expect_error_kind(drain(&mut client, None)), ErrorKind::Conflict);
    assert_eq!(nodes(&mut client)[0].1, NodeState::Running);
}

#[test]
fn a_drain_names_the_agents_whose_files_stay() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, _b] = start_all(&homes);
    let mut client = a.client();
    for agent in ["checkpoints", "empty", "files"] {
        client.init(agent);
        if agent != "empty" {
            std::fs::write(homes[0].agent_dir(agent).join("workspace/notes.txt"), "kept").expect("a file");
        }
    }
    chorusctl(&homes[0], ["agent", "config", "checkpoints", "checkpoint_workspace", "true"]).expect_success();
    let drained = drain(&mut client, None).expect("cluster.drain");
    assert_eq!((drained.moved, drained.files_left), (3, vec!["files".to_owned()]));
    undo(&mut client, None);
    expect_nodes(&mut client, &[("a", NodeState::Running, 0), ("b", NodeState::Running, 3)]);
    std::fs::write(homes[1].agent_dir("files").join("workspace/more.txt"), "kept").expect("a file");
    let said = chorusctl(&homes[0], ["cluster", "drain", "b"]);
    assert_eq!(said.stdout, "b takes no more agents; moved 3 agents\n");
    assert!(said.stderr.contains("the files in the workspaces of these agents stay on b: files\n"), "{}", said.stderr);
}
