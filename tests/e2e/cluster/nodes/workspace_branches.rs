//! Branches and worktrees of a workspace that comes back to a node, and a chain of bundles that goes on after a fault.

use std::fs;
use std::path::PathBuf;

use chorus_proto::Client;
use chorus_proto::methods::agent::{Config, ConfigParams, Init, InitParams};
use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Home, wait_until};
use serde_json::json;

use super::workspaces::{bundles, bytes, drain, init, notices, read, workspace, write};
use super::{Cluster, start_all};
use crate::sandbox::PROFILES;
use crate::tools::git::git;

#[test]
fn a_branch_that_was_set_back_on_another_node_is_set_back_here() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    for (text, name) in [("First the lighthouse.\n", "first"), ("Then the windmill.\n", "second")] {
        write(&homes[0], "plan.md", text);
        client.save("x", name);
    }
    drain(&mut client, "a");
    assert_eq!(read(&homes[1], "plan.md"), "Then the windmill.\n");
    git(&workspace(&homes[1]), &["branch", "later", "HEAD"]);
    git(&workspace(&homes[1]), &["reset", "--quiet", "--hard", "HEAD~1"]);
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "plan.md"), "First the lighthouse.\n", "this node kept the files that were given up");
    assert_eq!(git(&workspace(&homes[0]), &["show", "later:plan.md"]), "Then the windmill.");
    assert_eq!(notices(&mut client), <[String; 0]>::default());
    // On a branch that is older than what is here, too; what was made here meanwhile is kept.
    git(&workspace(&homes[0]), &["switch", "--quiet", "later"]);
    drain(&mut client, "a");
    assert_eq!(read(&homes[1], "plan.md"), "Then the windmill.\n");
    git(&workspace(&homes[1]), &["switch", "--quiet", "--create", "old", "HEAD~1"]);
    write(&homes[0], "plan.md", "At last the harbour.\n");
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "plan.md"), "First the lighthouse.\n");
    assert_eq!(git(&workspace(&homes[0]), &["symbolic-ref", "--short", "HEAD"]), "old");
    let told = notices(&mut client);
    assert!(matches!(&told[..], [text] if text.contains("is on the branch conflict-a-")), "{told:?}");
}

#[test]
fn a_chain_that_could_not_be_read_at_a_claim_goes_on_with_the_next_save() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    write(&homes[0], "large.txt", &super::workspaces::noise(200_000));
    client.save("x", "first");
    let (there, away) = (cluster.bucket.join("workspaces"), cluster.bucket.join("away"));
    fs::rename(&there, &away).expect("the bundles");
    drain(&mut client, "a");
    let told = notices(&mut other);
    assert!(matches!(&told[..], [text] if text.contains("older than checkpoint 1")), "{told:?}");
    fs::rename(&away, &there).expect("the bundles");
    write(&homes[1], "other.md", "Of the other node.\n");
    other.append("x", "two");
    let params = SaveParams { agent: Some("x".into()), ..Default::default() };
    let saved = other.call::<Save>(&params).expect("context.save");
    let said = saved.warnings.join("\n");
    let branch = said.rsplit("on the branch ").next().filter(|name| name.starts_with("from-a-"));
    let branch = branch.unwrap_or_else(|| panic!("no branch in {said:?}"));
    assert_eq!(git(&workspace(&homes[1]), &["show", &format!("{branch}:plan.md")]), "First the lighthouse.");
    assert_eq!(read(&homes[1], "plan.md"), "", "a save changes no files");
    let stored = bundles(&cluster.bucket);
    assert!(
        matches!(&stored[..], [first, next] if bytes(next) * 10 < bytes(first)),
        "the chain began again: {stored:?}"
    );
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "other.md"), "Of the other node.\n");
    assert_eq!(git(&workspace(&homes[0]), &["show", &format!("{branch}:plan.md")]), "First the lighthouse.");
    let told = notices(&mut client);
    assert_eq!(told.len(), 1, "the former node lacked nothing: {told:?}");
}

/// The worktree of the conversation `review`.
fn worktree(home: &Home) -> PathBuf {
    home.agent_dir("x").join("worktrees/review")
}

/// Has the model run a command in the conversation `review`.
fn run(models: &ModelServer, client: &mut Client, command: &str) {
    models.anthropic().queue(Response::tool_call("c1", "bash", &json!({ "command": command })));
    models.anthropic().queue_text(["Done."]);
    let conversation = Some("review".to_owned());
    let params = SendParams { agent: Some("x".into()), conversation, text: "Go.".into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
}

#[test]
fn the_worktree_of_a_conversation_follows_and_comes_back() {
    let Some(cluster) = Cluster::create() else { return };
    let models = ModelServer::start();
    let homes = ["a", "b"].map(|name| cluster.node_with(name, &format!("{}{PROFILES}", models.config_toml())));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    let permissions = Some("any".to_owned());
    let model = Some("anthropic/claude-test".to_owned());
    let params = InitParams { name: "x".into(), model, permissions, ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    for (key, value) in [("checkpoint_workspace", "true"), ("workspace", "worktree")] {
        let params = ConfigParams { name: "x".into(), key: Some(key.into()), value: Some(value.into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    git(&workspace(&homes[0]), &["init", "--quiet", "--initial-branch=main"]);
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    let params = NewParams { agent: Some("x".into()), name: "review".into(), ..Default::default() };
    client.call::<New>(&params).expect("conversations.new");
    run(&models, &mut client, "echo one >notes.md");
    // Nobody has saved it.
    drain(&mut client, "a");
    run(&models, &mut other, "cat notes.md && echo two >>notes.md");
    let seen = fs::read_to_string(worktree(&homes[1]).join("notes.md"));
    assert_eq!(seen.ok().as_deref(), Some("one\ntwo\n"));
    drain(&mut other, "b");
    run(&models, &mut client, "echo three >>notes.md");
    let seen = fs::read_to_string(worktree(&homes[0]).join("notes.md")).expect("the notes");
    assert_eq!(seen, "one\ntwo\nthree\n", "the worktree of this node was as it was when the agent left");
    assert_eq!(git(&worktree(&homes[0]), &["symbolic-ref", "--short", "HEAD"]), "conversation/review/work");
    let told = client.messages_in("x", "review");
    assert!(told.iter().all(|message| !message.content.contains("conflict-")), "{told:?}");
    // What is edited on a node that had lost the agent gets a branch.
    drain(&mut client, "a");
    fs::write(worktree(&homes[0]).join("notes.md"), "of nobody\n").expect("a file");
    run(&models, &mut other, "echo four >>notes.md");
    drain(&mut other, "b");
    let seen = fs::read_to_string(worktree(&homes[0]).join("notes.md")).expect("the notes");
    assert_eq!(seen, "one\ntwo\nthree\nfour\n");
    wait_until("the notice", chorus_tests::DEADLINE, || {
        let told = client.messages_in("x", "review");
        told.iter().any(|message| message.content.contains("is on the branch conflict-a-")).then_some(())
    });
}
