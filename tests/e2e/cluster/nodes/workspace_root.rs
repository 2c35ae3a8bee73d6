//! Workspaces in a directory that all nodes share.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use chorus_proto::Client;
use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams, Init, InitParams};
use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::json;

use super::workspaces::{bundles, drain, init, notices, read, workspace, write};
use super::{Cluster, start_all, try_append};
use crate::sandbox::PROFILES;
use crate::tools::git::git;

/// Makes the directory that the nodes share.
fn make_root(cluster: &Cluster) -> PathBuf {
    let root = cluster.files.path().join("shared");
    fs::create_dir(&root).expect("a directory");
    root.canonicalize().expect("its path")
}

/// Sets `workspace_root` of a node.
fn share(home: &Home, root: &Path) {
    let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
    // Its last table is that of the cluster.
    home.write_config(&format!("{config}workspace_root = \"{}\"\n", root.display()));
}

/// Has the model run a command in a conversation.
fn run(models: &ModelServer, client: &mut Client, conversation: Option<&str>, command: &str) {
    models.anthropic().queue(Response::tool_call("c1", "bash", &json!({ "command": command })));
    models.anthropic().queue_text(["Done."]);
    let conversation = conversation.map(str::to_owned);
    let params = SendParams { agent: Some("x".into()), conversation, text: "Go.".into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
}

fn shared_workspace(client: &mut Client) -> PathBuf {
    client.agent_status("x").workspace.expect("the workspace is not in the agent's directory").into()
}

#[test]
fn an_agent_finds_its_files_on_each_node_as_they_were() {
    let Some(cluster) = Cluster::create() else { return };
    let (models, root) = (ModelServer::start(), make_root(&cluster));
    let homes = ["a", "b"].map(|name| cluster.node_with(name, &format!("{}{PROFILES}", models.config_toml())));
    homes.iter().for_each(|home| share(home, &root));
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    let (model, permissions) = (Some("anthropic/claude-test".to_owned()), Some("any".to_owned()));
    let params = InitParams { name: "x".into(), model, permissions, ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    for (key, value) in [("checkpoint_workspace", "true"), ("workspace", "worktree")] {
        let params = ConfigParams { name: "x".into(), key: Some(key.into()), value: Some(value.into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    let there = shared_workspace(&mut client);
    assert!(there.starts_with(&root) && there.join(".git").exists(), "{}", there.display());
    assert!(!workspace(&homes[0]).exists(), "the agent has two workspaces");
    let params = NewParams { agent: Some("x".into()), name: "review".into(), ..Default::default() };
    client.call::<New>(&params).expect("conversations.new");
    run(&models, &mut client, None, "echo first >plan.md");
    client.save("x", "draft");
    run(&models, &mut client, Some("review"), "cat plan.md >>notes.md");
    drain(&mut client, "a");
    // Nobody has saved this, and its node has no time to hand it over.
    run(&models, &mut other, None, "cat plan.md >seen.md; echo second >>plan.md; ls -A ../.. >others.md");
    run(&models, &mut other, Some("review"), "echo more >>notes.md");
    b.kill9();
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut client, "x", "one").ok());
    assert_eq!(shared_workspace(&mut client), there);
    let read = |name: &str| fs::read_to_string(there.join(name)).unwrap_or_default();
    assert_eq!((read("plan.md"), read("seen.md")), ("first\nsecond\n".into(), "first\n".into()));
    let id = there.parent().and_then(Path::file_name).expect("the agent's directory").to_string_lossy();
    assert_eq!(read("others.md").trim(), id, "commands see only the workspace of their agent");
    let notes = fs::read_to_string(there.with_file_name("worktrees").join("review/notes.md")).expect("the notes");
    assert_eq!(notes, "first\nmore\n");
    assert_eq!(notices(&mut client), [""; 0], "nothing is missing");
    assert!(!cluster.bucket.join("workspaces").exists(), "{:?}", bundles(&cluster.bucket));
    let report = client.call::<Doctor>(&DoctorParams::default()).expect("doctor");
    let found = report.checks.iter().find(|check| check.name == "workspace root").expect("a check");
    assert!(found.verdict == Verdict::Ok && found.text.contains(&*root.to_string_lossy()), "{found:?}");
    // A file system that is gone is not taken for an empty one.
    fs::rename(&root, root.with_file_name("elsewhere")).expect("the directory");
    fs::create_dir(&root).expect("a directory");
    let report = client.call::<Doctor>(&DoctorParams::default()).expect("doctor");
    let found = report.checks.into_iter().find(|check| check.name == "workspace root").expect("a check");
    assert!(found.verdict == Verdict::Fail && found.text.contains(".chorus-workspaces"), "{found:?}");
    client.call::<Init>(&InitParams { name: "y".into(), ..Default::default() }).expect_err("an agent without files");
    fs::remove_dir(&root).expect("nothing was written there");
    fs::rename(root.with_file_name("elsewhere"), &root).expect("the directory");
    let purge = DestroyParams { name: "x".into(), purge: true, ..Default::default() };
    client.call::<Destroy>(&purge).expect("agent.destroy");
    assert!(!there.exists(), "a purged agent has files");
}

#[test]
fn a_workspace_that_is_on_a_node_is_copied_once() {
    let Some(cluster) = Cluster::create() else { return };
    let root = make_root(&cluster);
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    symlink("plan.md", workspace(&homes[0]).join("link.md")).expect("a link");
    client.save("x", "first");
    git(&workspace(&homes[0]), &["branch", "idea", "HEAD"]);
    other.init("y");
    other.append("y", "one");
    let of_y = homes[1].agent_dir("y").join("workspace");
    fs::write(of_y.join("plan.md"), "Of b.\n").expect("a file");
    drop((client, other));
    // Not stopped, because each would hand its agent over.
    a.kill9();
    b.kill9();
    homes.iter().for_each(|home| share(home, &root));
    // The other one seems to run until its heartbeat is stale.
    let start = || Daemon::try_start(&homes[0], homes[0].command(homes[0].bins.chorusd)).ok();
    let a = wait_until("a start", DEADLINE * 3, start);
    let mut client = a.client();
    let there = shared_workspace(&mut client);
    assert_eq!(fs::read_to_string(there.join("plan.md")).expect("the file"), "First the lighthouse.\n");
    assert_eq!(fs::read_link(there.join("link.md")).expect("the link"), Path::new("plan.md"));
    assert!(git(&there, &["branch", "--list", "idea"]).contains("idea"));
    assert_eq!(git(&there, &["status", "--porcelain"]), "");
    assert_eq!(read(&homes[0], "plan.md"), "", "the agent has two workspaces");
    let kept = workspace(&homes[0]).with_file_name("workspace.moved");
    assert_eq!(fs::read_to_string(kept.join("plan.md")).expect("the former one"), "First the lighthouse.\n");
    fs::write(there.join("plan.md"), "Then the windmill.\n").expect("the file");
    // Taken on by this node before the one that has its files starts.
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut client, "y", "two").ok());
    let b = Daemon::start(&homes[1]);
    let mut other = b.client();
    client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    client.call::<Drain>(&DrainParams { node: None, undo: false }).expect("cluster.drain");
    assert_eq!(shared_workspace(&mut other), there);
    assert_eq!(fs::read_to_string(there.join("plan.md")).expect("the file"), "Then the windmill.\n");
    assert_eq!(notices(&mut other), [""; 0]);
    assert!(!homes[1].agent_dir("x").join("workspace.moved").exists(), "what was moved is a file of the agent");
    let told = other.message_texts("y");
    let kept = homes[1].agent_dir("y").join("workspace.moved");
    assert!(told.iter().any(|text| text.contains(&*kept.to_string_lossy())), "{told:?}");
    assert_eq!(fs::read_to_string(kept.join("plan.md")).expect("the files of b"), "Of b.\n");
}

/// Starts a daemon that refuses to run, and returns what it says.
fn refusal(home: &Home) -> String {
    let (_, said) = Daemon::try_start(home, home.command(home.bins.chorusd)).map(drop).expect_err("the daemon runs");
    said
}

#[test]
fn a_node_with_another_directory_does_not_start() {
    let Some(cluster) = Cluster::create() else { return };
    let root = make_root(&cluster);
    let homes = [cluster.node("a"), cluster.node("b")];
    let [former, config] =
        homes.each_ref().map(|home| fs::read_to_string(home.path.join("config.toml")).expect("config.toml"));
    let b = Daemon::start(&homes[1]);
    share(&homes[0], &root);
    let said = refusal(&homes[0]);
    assert!(said.contains("node b runs without workspace_root") && said.contains("stop all nodes first"), "{said}");
    b.terminate();
    let a = Daemon::start(&homes[0]);
    a.client().init("x");
    let said = refusal(&homes[1]);
    assert!(said.contains("and this one has no workspace_root") && said.contains(&*root.to_string_lossy()), "{said}");
    let empty = root.with_file_name("empty");
    fs::create_dir(&empty).expect("a directory");
    for (path, why) in [(&empty, "it is not the directory of the other nodes"), (&empty.join("x"), "No such file")] {
        homes[1].write_config(&config);
        share(&homes[1], path);
        let said = refusal(&homes[1]);
        assert!(said.contains(why) && said.contains("mount the file system"), "{said}");
    }
    // git stores the paths of worktrees.
    let elsewhere = root.with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    fs::copy(root.join(".chorus-workspaces"), elsewhere.join(".chorus-workspaces")).expect("the mark");
    homes[1].write_config(&config);
    share(&homes[1], &elsewhere);
    assert!(refusal(&homes[1]).contains("mount the file system at the same path on all nodes"));
    homes[1].write_config(&format!("{config}workspace_root = \"none\"\n"));
    assert!(refusal(&homes[1]).contains("node a shares the directory of workspaces"));
    // Also when it is the only one.
    a.terminate();
    homes[1].write_config(&config);
    share(&homes[1], &empty);
    assert!(refusal(&homes[1]).contains("it is not the directory of the other nodes"));
    homes[1].write_config(&format!("{config}workspace_root = \"none\"\n"));
    let b = Daemon::start(&homes[1]);
    b.client().init("y");
    assert!(homes[1].agent_dir("y").join("workspace/.git").exists());
    b.terminate();
    // What was shared once is not taken for the files of today.
    assert!(refusal(&homes[0]).contains("has workspaces of another cluster, or of an earlier setup"));
    homes[0].write_config(&former);
    let a = Daemon::start(&homes[0]);
    a.client().append("x", "one");
    assert!(workspace(&homes[0]).exists(), "the tools of the agent have no directory");
}
