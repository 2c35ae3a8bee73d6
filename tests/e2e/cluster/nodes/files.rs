//! The docs/ of an agent, which follow it.

use std::fs;

use chorus_proto::Client;
use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::memory::{Search, SearchParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::json;

use super::{Cluster, start_all, try_append};

/// The paths of the docs of `x` in which a word is found.
fn docs_with(client: &mut Client, word: &str) -> Vec<String> {
    let params = SearchParams { agent: Some("x".into()), query: word.into(), limit: None };
    let found = client.call::<Search>(&params).expect("memory.search");
    found.docs.into_iter().map(|passage| passage.path).collect()
}

fn doc(home: &Home, name: &str) -> std::path::PathBuf {
    home.agent_dir("x").join("docs").join(name)
}

#[test]
fn docs_that_a_person_edited_follow_the_agent_after_its_node_was_killed() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.append("x", "one");
    fs::write(doc(&homes[0], "plan.md"), "First the lighthouse.").expect("a note");
    // A save stores what was edited.
    client.save("x", "first");
    a.kill9();
    assert_eq!(try_append(&mut other, "x", "two").expect("an append after the takeover"), 2);
    assert_eq!(docs_with(&mut other, "lighthouse"), ["docs/plan.md"]);
    assert_eq!(fs::read_to_string(doc(&homes[1], "plan.md")).expect("the note"), "First the lighthouse.");
    assert!(doc(&homes[1], "README.md").exists(), "what its template had");
    // Both are edited, there by a person who does not know that the agent has moved.
    fs::write(doc(&homes[1], "plan.md"), "Then the windmill.").expect("a note");
    fs::write(doc(&homes[0], "plan.md"), "Then the harbour.").expect("a note");
    let a = Daemon::start(&homes[0]);
    drop(other);
    assert!(b.terminate().success());
    let mut client = a.client();
    assert_eq!(docs_with(&mut client, "windmill"), ["docs/plan.md"]);
    let copies = docs_with(&mut client, "harbour");
    assert!(matches!(&copies[..], [copy] if copy.starts_with("docs/plan.md.conflict-a-")), "{copies:?}");
    assert!(a.read_log().contains("the edit is saved under another name"));
    // Without a save, they are stored after a while: by hand, nothing else happens to the agent.
    fs::write(doc(&homes[0], "late.md"), "At last the bakery.").expect("a note");
    wait_until("the edit in the database", DEADLINE * 3, || {
        let known = fs::read_dir(homes[0].path.join("db/agent-files")).expect("what is known").next()?;
        let text = fs::read_to_string(known.expect("an entry").path()).expect("what is known");
        text.contains("docs/late.md").then_some(())
    });
    a.kill9();
    let b = Daemon::start(&homes[1]);
    let mut other = b.client();
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut other, "x", "three").ok());
    assert_eq!(docs_with(&mut other, "bakery"), ["docs/late.md"]);
    assert_eq!(docs_with(&mut other, "harbour"), copies);
    // With the agent, its files go.
    let params = DestroyParams { name: "x".into(), purge: true, ..Default::default() };
    other.call::<Destroy>(&params).expect("agent.destroy");
    assert_eq!(fs::read_dir(homes[1].path.join("db/agent-files")).expect("what is known").count(), 0);
}

#[test]
fn what_an_agent_wrote_into_its_docs_is_there_after_its_node_was_killed_at_once() {
    let Some(cluster) = Cluster::create() else { return };
    let models = ModelServer::start();
    let homes = [cluster.node("a"), cluster.node("b")];
    for home in &homes {
        let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
        home.write_config(&format!("{}{config}", models.config_toml()));
    }
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    let note = json!({"path": "plan.md", "content": "First the lighthouse."});
    models.anthropic().queue(Response::tool_call("c1", "self_edit_docs", &note));
    models.anthropic().queue_text(["Done."]);
    let params = SendParams { agent: Some("x".into()), text: "plan".into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
    a.kill9();
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut other, "x", "next").ok());
    assert_eq!(docs_with(&mut other, "lighthouse"), ["docs/plan.md"]);
}
