//! Workspaces that follow their agent, by bundles of their checkpoints.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::Client;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::cluster::{Drain, DrainParams};
use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Home, wait_until};

use super::drain::Asker;
use super::{Cluster, start_all, try_append};
use crate::tools::git::git;

/// Creates the agent `x`, whose saves commit its workspace.
pub(super) fn init(client: &mut Client) {
    client.init("x");
    let (key, value) = (Some("checkpoint_workspace".into()), Some("true".into()));
    client.call::<Config>(&ConfigParams { name: "x".into(), key, value }).expect("agent.config");
}

pub(super) fn workspace(home: &Home) -> PathBuf {
    home.agent_dir("x").join("workspace")
}

pub(super) fn write(home: &Home, name: &str, text: &str) {
    fs::write(workspace(home).join(name), text).expect("a file");
}

pub(super) fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(workspace(home).join(name)).unwrap_or_default()
}

/// Moves all agents of a node to the other one.
pub(super) fn drain(client: &mut Client, node: &str) {
    client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    let drained = client.call::<Drain>(&DrainParams { node: Some(node.into()), undo: false }).expect("cluster.drain");
    assert_eq!(drained.moved, 1, "{drained:?}");
    wait_until("the successor", DEADLINE, || (client.agent_status("x").node.as_deref() != Some(node)).then_some(()));
    client.call::<Drain>(&DrainParams { node: Some(node.into()), undo: true }).expect("cluster.drain --undo");
}

/// The messages about the workspace.
pub(super) fn notices(client: &mut Client) -> Vec<String> {
    let texts = client.message_texts("x").into_iter();
    texts.filter(|text| text.to_lowercase().contains("your workspace")).collect()
}

/// The objects with bundles, by time.
pub(super) fn bundles(bucket: &Path) -> Vec<PathBuf> {
    let agents = fs::read_dir(bucket.join("workspaces")).expect("the bundles");
    let dirs = agents.map(|entry| entry.expect("an agent").path());
    let mut found: Vec<PathBuf> = dirs
        .flat_map(|dir| fs::read_dir(dir).expect("a directory"))
        .map(|entry| entry.expect("an object").path())
        .collect();
    found.sort_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).expect("a time"));
    found
}

pub(super) fn bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("an object").len()
}

/// Text that cannot be compressed much.
pub(super) fn noise(length: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&format!("{:016x}\n", next()));
    }
    text
}

#[test]
fn a_workspace_follows_its_agent_after_its_node_was_killed_and_the_agent_is_told() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "large.txt", &noise(400_000));
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    client.save("x", "first");
    client.append("x", "two");
    write(&homes[0], "plan.md", "Then the windmill.\n");
    client.save("x", "second");
    // What has not changed is not stored again.
    client.save("x", "third");
    let stored = bundles(&cluster.bucket);
    assert_eq!(stored.len(), 2, "{stored:?}");
    let (first, second) = (bytes(&stored[0]), bytes(&stored[1]));
    assert!(first > 100_000 && second < first / 50, "the first bundle has {first} bytes, the second {second}");
    write(&homes[0], "late.md", "Nobody has saved this.\n");
    a.kill9();
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut other, "x", "three").ok());
    assert_eq!(read(&homes[1], "plan.md"), "Then the windmill.\n");
    assert_eq!(read(&homes[1], "large.txt").len(), read(&homes[0], "large.txt").len());
    assert_eq!(read(&homes[1], "late.md"), "");
    let told = notices(&mut other);
    assert!(
        matches!(&told[..], [text] if text.contains("(checkpoint 2, from node a)") && text.contains("is not in it")),
        "{told:?}"
    );
    let texts = other.message_texts("x");
    assert_eq!(texts.last().map(String::as_str), Some("three"), "the agent was told after the message: {texts:?}");
    assert_eq!(git(&workspace(&homes[1]), &["status", "--porcelain"]), "");
}

#[test]
fn a_workspace_that_is_drained_lacks_nothing_and_edits_of_both_nodes_are_kept() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "plan.md", "Nothing yet.\n");
    client.save("x", "draft");
    git(&workspace(&homes[0]), &["branch", "idea", "HEAD"]);
    // Nobody has saved this.
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    drain(&mut client, "a");
    assert_eq!(read(&homes[1], "plan.md"), "First the lighthouse.\n");
    assert_eq!(other.message_texts("x"), ["one"]);
    assert!(git(&workspace(&homes[1]), &["branch", "--list", "idea"]).contains("idea"));
    // Somebody edits on the former node, who does not know that the agent has moved.
    write(&homes[0], "plan.md", "Then the harbour.\n");
    fs::create_dir_all(workspace(&homes[0]).join(".git/info")).expect("a directory");
    fs::write(workspace(&homes[0]).join(".git/info/exclude"), "cache.txt\n").expect("a list of ignored files");
    write(&homes[0], "cache.txt", "of a\n");
    write(&homes[1], "plan.md", "Then the windmill.\n");
    write(&homes[1], "cache.txt", "of b\n");
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "plan.md"), "Then the windmill.\n");
    let told = notices(&mut client);
    let branch = match &told[..] {
        [text] => text.split("on the branch ").nth(1).map(|rest| rest.trim_end_matches('.').to_owned()),
        _ => None,
    };
    let branch = branch.unwrap_or_else(|| panic!("no branch in {told:?}"));
    assert!(branch.starts_with("conflict-a-"), "{branch}");
    assert_eq!(git(&workspace(&homes[0]), &["show", &format!("{branch}:plan.md")]), "Then the harbour.");
    // A file that is in no commit gets another name.
    assert_eq!(read(&homes[0], "cache.txt"), "of b\n");
    let names =
        fs::read_dir(workspace(&homes[0])).expect("the workspace").map(|entry| entry.expect("a file").file_name());
    let copies: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("cache.txt.conflict-a-")).collect();
    assert!(matches!(&copies[..], [copy] if read(&homes[0], &copy.to_string_lossy()) == "of a\n"), "{copies:?}");
}

#[test]
fn checkpoints_may_be_turned_on_after_a_move() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    client.init("x");
    client.append("x", "one");
    drain(&mut client, "a");
    let (key, value) = (Some("checkpoint_workspace".into()), Some("true".into()));
    other.call::<Config>(&ConfigParams { name: "x".into(), key, value }).expect("agent.config");
    write(&homes[1], "plan.md", "First the lighthouse.\n");
    let params = SaveParams { agent: Some("x".into()), ..Default::default() };
    let saved = other.call::<Save>(&params).expect("context.save");
    assert_eq!(saved.warnings, [""; 0], "the workspace has no repository on this node");
    b.kill9();
    wait_until("the takeover", DEADLINE * 3, || try_append(&mut client, "x", "two").ok());
    assert_eq!(read(&homes[0], "plan.md"), "First the lighthouse.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_for_while_it_moves_lacks_nothing() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let mut clients = [a.client(), b.client()];
    init(&mut clients[0]);
    clients[0].append("x", "one");
    write(&homes[0], "plan.md", "Nothing yet.\n");
    clients[0].save("x", "draft");
    for round in 0..8 {
        let (from, to) = (round % 2, (round + 1) % 2);
        // The requests claim the agent when the notification that it is wanted does.
        let askers = [Asker::start(&homes[from], "x", "a"), Asker::start(&homes[to], "x", "b")];
        write(&homes[from], "plan.md", &format!("Round {round}.\n"));
        drain(&mut clients[from], ["a", "b"][from]);
        askers.into_iter().for_each(|asker| drop(asker.end("while the agent moves")));
        assert_eq!(read(&homes[to], "plan.md"), format!("Round {round}.\n"));
    }
    assert_eq!(notices(&mut clients[0]), [""; 0]);
}

#[test]
fn a_damaged_bundle_is_refused_with_a_word_to_the_agent_and_a_later_one_is_complete() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    client.save("x", "first");
    let object = bundles(&cluster.bucket).remove(0);
    let mut content = fs::read(&object).expect("the bundle");
    content.truncate(content.len() - 20);
    fs::write(&object, content).expect("the bundle");
    let workspaces = |client: &mut Client| {
        let report = client.call::<Doctor>(&DoctorParams::default()).expect("doctor");
        let found = report.checks.into_iter().find(|check| check.name == "workspaces").expect("a check");
        (found.verdict, found.text)
    };
    assert_eq!(workspaces(&mut client), (Verdict::Ok, "1 checkpoint of workspaces, and none is missing".into()));
    fs::rename(&object, cluster.bucket.join("away")).expect("the bundle");
    let missing = "the bucket lacks 1 checkpoint of the workspaces of x";
    assert_eq!(workspaces(&mut client), (Verdict::Fail, missing.into()));
    fs::rename(cluster.bucket.join("away"), &object).expect("the bundle");
    drain(&mut client, "a");
    assert_eq!(read(&homes[1], "plan.md"), "");
    let told = notices(&mut other);
    assert!(
        matches!(&told[..], [text] if text.contains("older than checkpoint 1") && text.contains("is not as it was written")),
        "{told:?}"
    );
    // The agent begins again here, and its next node gets that.
    write(&homes[1], "plan.md", "Then the windmill.\n");
    other.append("x", "two");
    other.save("x", "second");
    assert_eq!(bundles(&cluster.bucket).len(), 2);
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "plan.md"), "Then the windmill.\n");
    let told = notices(&mut client);
    assert!(matches!(&told[..], [_, text] if text.contains("on the branch conflict-a-")), "{told:?}");
}

#[test]
fn programs_that_a_workspace_names_do_not_run_when_it_is_brought_up_to_date() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    init(&mut client);
    client.append("x", "one");
    write(&homes[0], "plan.md", "First the lighthouse.\n");
    drain(&mut client, "a");
    for home in &homes {
        let root = workspace(home);
        for name in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit"] {
            let hook = root.join(".git/hooks").join(name);
            fs::create_dir_all(root.join(".git/hooks")).expect("a directory");
            fs::write(&hook, "#!/bin/sh\ntouch \"$GIT_WORK_TREE/ran\" \"$PWD/ran\"\n").expect("a hook");
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        git(&root, &["config", "core.fsmonitor", "touch ran; false"]);
        git(&root, &["config", "core.hooksPath", ".git/hooks"]);
        git(&root, &["config", "core.sshCommand", "touch ran"]);
    }
    write(&homes[1], "plan.md", "Then the windmill.\n");
    drain(&mut other, "b");
    assert_eq!(read(&homes[0], "plan.md"), "Then the windmill.\n");
    for home in &homes {
        assert!(!workspace(home).join("ran").exists(), "a program of the workspace has run");
    }
    // One that cannot be overridden: nothing is restored, and the agent is told.
    fs::write(workspace(&homes[1]).join(".git/config"), "[filter \"x\"]\n\tsmudge = touch ran\n\tclean = touch ran\n")
        .expect("the configuration");
    write(&homes[0], "plan.md", "At last the harbour.\n");
    drain(&mut client, "a");
    assert_eq!(read(&homes[1], "plan.md"), "Then the windmill.\n");
    let told = notices(&mut other);
    assert!(matches!(&told[..], [text] if text.contains("runs a program")), "{told:?}");
    assert!(!workspace(&homes[1]).join("ran").exists());
}
