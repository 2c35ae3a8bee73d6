//! From one home into another: nothing is lost on the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Restore, RestoreParams};
use chorus_proto::methods::memory::{Add, AddParams, List, ListParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};

use super::tree;
use crate::home;
use crate::tools::git::git;

/// A workspace with all that one can have.
fn work(dir: &Path) {
    fs::write(dir.join(".gitattributes"), "*.txt text=auto\n").expect("a file");
    fs::write(dir.join(".gitignore"), "*.log\n").expect("a file");
    fs::write(dir.join("lines.txt"), "a\r\nb\r\n").expect("a file");
    fs::write(dir.join("gone"), "soon").expect("a file");
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--message=first"]);
    git(dir, &["branch", "side"]);
    git(dir, &["tag", "--annotate", "--message=one", "v1"]);
    fs::write(dir.join("stashed"), "for later").expect("a file");
    git(dir, &["add", "stashed"]);
    git(dir, &["stash", "push", "--quiet"]);
    git(dir, &["checkout", "--quiet", "-b", "topic"]);
    fs::write(dir.join("staged"), "staged").expect("a file");
    git(dir, &["add", "staged"]);
    fs::write(dir.join("staged"), "staged, and more").expect("a file");
    fs::create_dir(dir.join("new dir")).expect("a directory");
    fs::write(dir.join("new dir/not known"), vec![0, 255, 10]).expect("a file");
    fs::write(dir.join("ignored.log"), "noise").expect("a file");
    fs::write(dir.join("run.sh"), "#!/bin/sh\n").expect("a file");
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("executable");
    symlink("/etc/passwd", dir.join("link")).expect("a link");
    fs::remove_file(dir.join("gone")).expect("it goes");
}

#[test]
fn an_agent_is_the_same_in_another_home() {
    let (one, two) = (home(), home());
    let daemon = Daemon::start(&one);
    let mut client = daemon.client();
    client.init("atlas");
    for (key, value) in [("system_prompt", "You keep maps."), ("project", "maps"), ("channel_id", "42")] {
        let params = ConfigParams { name: "atlas".into(), key: Some(key.into()), value: Some(value.into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    let dir = one.agent_dir("atlas");
    fs::create_dir_all(dir.join("docs/deep")).expect("a directory");
    fs::write(dir.join("docs/rules.md"), "# Rules\n").expect("a note");
    fs::write(dir.join("docs/deep").join("x".repeat(150)), "deep").expect("a note");
    symlink("/etc/passwd", dir.join("docs/link")).expect("a link");
    client.append("atlas", "hello");
    let first = client.save("atlas", "first words");
    client.restore("atlas", "latest");
    client.append("atlas", "not saved yet");
    fs::write(one.sessions_dir("atlas").join("2026-01-01_broken.json"), "{\"schema\": 2").expect("a broken session");
    for (text, project) in [("mine", false), ("ours", true)] {
        let params = AddParams { agent: Some("atlas".into()), text: text.into(), project, ..Default::default() };
        client.call::<Add>(&params).expect("memory.add");
    }
    work(&dir.join("workspace"));
    let archive = one.temp_dir().join("atlas.tar");
    let archive = archive.to_str().expect("UTF-8");
    let said = chorusctl(&one, ["agent", "export", "atlas", "--output", archive]);
    assert!(said.stderr.contains("docs/link"), "{}", said.stderr);
    assert!(said.expect_success().contains("2 memories"));
    assert_eq!(fs::metadata(archive).expect("the file").permissions().mode() & 0o777, 0o600);
    assert_eq!(client.message_texts("atlas"), ["hello", "not saved yet"], "the conversation goes on");

    let there = Daemon::start(&two);
    let said = chorusctl(&two, ["agent", "import", archive]);
    assert!(said.stderr.contains("1 session unreadable"), "{}", said.stderr);
    assert!(said.expect_success().starts_with("imported atlas (3 sessions, 2 memories)"));
    let mut client = there.client();
    let sessions = client.history("atlas");
    assert_eq!(sessions.iter().filter(|session| session.corrupt.is_none()).count(), 2);
    let parents: Vec<_> = sessions.iter().filter_map(|session| session.header.parent_id).collect();
    assert_eq!(parents, [first.header.id]);
    assert_eq!(tree(&one.sessions_dir("atlas")), tree(&two.sessions_dir("atlas")), "byte for byte");
    let mut docs = tree(&dir.join("docs"));
    docs.retain(|(path, _)| path != "link");
    assert_eq!(docs, tree(&two.agent_dir("atlas").join("docs")));
    let config = |home: &chorus_tests::Home| {
        let text = fs::read_to_string(home.agent_dir("atlas").join("agent.json")).expect("agent.json");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let (before, after) = (config(&one), config(&two));
    for key in ["id", "name", "system_prompt", "project", "created_at"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert!(after["channel_id"].is_null());
    let list = client.call::<List>(&ListParams::default()).expect("a list").entries;
    let kept: Vec<_> = list.iter().map(|entry| (entry.text.as_str(), entry.project.as_deref())).collect();
    assert_eq!(kept, [("ours", Some("maps")), ("mine", None)]);

    let (was, is) = (dir.join("workspace"), two.agent_dir("atlas").join("workspace"));
    let mut files = tree(&was);
    files.retain(|(path, _)| path != "ignored.log");
    assert_eq!(files, tree(&is));
    let executable = fs::metadata(is.join("run.sh")).expect("the script").permissions().mode() & 0o111;
    assert_ne!(executable, 0);
    for args in [
        &["log", "--all", "--format=%H %D %an %s"][..],
        &["status", "--short", "--branch"],
        &["diff", "--cached"],
        &["stash", "list"],
        &["tag", "--list", "--format=%(objectname) %(contents)"],
        &["for-each-ref"],
    ] {
        assert_eq!(git(&was, args), git(&is, args), "git {args:?}");
    }
    git(&is, &["fsck", "--strict"]);
    assert!(!is.join(".git/chorus.bundle").exists() && !is.join(".git/info/attributes").exists());
    client.restore("atlas", "latest");
    assert_eq!(client.message_texts("atlas"), ["hello", "not saved yet"]);
}

#[test]
fn an_archive_goes_through_a_pipe_and_files_are_not_replaced_by_chance() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let said = chorusctl(&home, ["agent", "export", "a"]).expect_success();
    assert!(said.starts_with("exported a to a.agent.tar ("), "{said}");
    chorusctl(&home, ["agent", "export", "a"]).expect_failure_with_hint(2);
    chorusctl(&home, ["agent", "export", "a", "--output", "a.agent.tar"]).expect_success();
    let bytes = fs::read(home.user_home.join("a.agent.tar")).expect("the archive");
    let said = chorusctl_with(&home, ["agent", "import", "-", "--as", "b", "--json"], &bytes).expect_json();
    assert_eq!(said["agent"]["name"], "b");
    assert_eq!(said["new_id"], true);
    chorusctl(&home, ["agent", "export", "nobody"]).expect_failure_with_hint(3);
    chorusctl(&home, ["agent", "import", "nothing.tar"]).expect_failure(3);
    let left: Vec<_> =
        fs::read_dir(&home.user_home).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".a.agent")), "{left:?}");
}

#[test]
fn a_workspace_without_history_or_commits_moves_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("bare");
    client.init("fresh");
    let bare = home.agent_dir("bare").join("workspace");
    fs::remove_dir_all(bare.join(".git")).expect("it goes");
    fs::write(bare.join("a"), "a").expect("a file");
    let fresh = home.agent_dir("fresh").join("workspace");
    fs::remove_dir_all(fresh.join(".git")).expect("it goes");
    git(&fresh, &["init", "--quiet", "--initial-branch=trunk"]);
    fs::write(fresh.join("b"), "b").expect("a file");
    for dir in [&bare, &fresh] {
        fs::remove_file(dir.join(".gitkeep")).expect("it goes");
    }
    for name in ["bare", "fresh"] {
        let bytes = super::export(&mut client, name).0;
        super::import(&mut client, &bytes, Some(&format!("{name}-2"))).expect("imported");
    }
    let (bare, fresh) = (home.agent_dir("bare-2").join("workspace"), home.agent_dir("fresh-2").join("workspace"));
    assert!(!bare.join(".git").exists());
    assert_eq!(tree(&bare), [("a".to_owned(), "a".to_owned())]);
    assert_eq!(git(&fresh, &["status", "--short", "--branch"]), "## No commits yet on trunk\n?? b");
}

#[test]
fn files_of_a_checkpoint_come_back_after_a_move() {
    let (one, two) = (home(), home());
    let (here, there) = (Daemon::start(&one), Daemon::start(&two));
    let mut client = here.client();
    client.init("a");
    let params =
        ConfigParams { name: "a".into(), key: Some("checkpoint_workspace".into()), value: Some("true".into()) };
    client.call::<Config>(&params).expect("agent.config");
    client.append("a", "one");
    let workspace = one.agent_dir("a").join("workspace");
    fs::write(workspace.join("plan.md"), "first").expect("a file");
    let session = client.save("a", "with a plan");
    git(&workspace, &["reset", "--hard", "--quiet", "HEAD~1"]);
    let bytes = super::export(&mut client, "a").0;
    let mut client = there.client();
    super::import(&mut client, &bytes, None).expect("imported");
    let session = session.header.session_id;
    let params = RestoreParams { agent: Some("a".into()), session, files: true, ..Default::default() };
    client.call::<Restore>(&params).expect("restored");
    assert_eq!(fs::read_to_string(two.agent_dir("a").join("workspace/plan.md")).expect("the file"), "first");
    let refs = git(&two.agent_dir("a").join("workspace"), &["for-each-ref", "--format=%(refname)", "refs/chorus"]);
    assert!(refs.lines().all(|name| name.starts_with("refs/chorus/checkpoints/")), "{refs}");
    drop((here, there));
}

#[test]
fn history_that_is_elsewhere_is_not_lost_in_silence() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let workspace = home.agent_dir("a").join("workspace");
    fs::rename(workspace.join(".git"), home.temp_dir().join("elsewhere")).expect("it moves");
    symlink(home.temp_dir().join("elsewhere"), workspace.join(".git")).expect("a link");
    let said = chorusctl(&home, ["agent", "export", "a"]);
    assert!(said.stderr.contains("no directory of its own") && said.stderr.contains("hint:"), "{}", said.stderr);
}
