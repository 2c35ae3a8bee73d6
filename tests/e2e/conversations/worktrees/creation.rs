//! A worktree is created when its conversation first uses a tool, and healed after a crash.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::conversations::{Rename, RenameParams};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::*;
use crate::conversations::list;

#[test]
fn two_conversations_edit_a_file_at_once_and_neither_sees_the_other() {
    let fixture = start_fixture(&["review", "fix"]);
    write(&fixture, "main", "f", "of main\n");
    commit(&fixture, "main", "First");
    assert!(!worktree(&fixture, "review").exists(), "nothing is created before it is used");
    // Both turns are in the middle of their call at the same time.
    let turns: Vec<_> = ["review", "fix"]
        .map(|name| {
            let command = format!("touch {name}; until [ -e go ]; do sleep 0.05; done; echo of {name} >f; cat f; pwd");
            fixture.answer(Response::tool_call("c1", "bash", &json!({ "command": command })));
            let params = SendParams {
                agent: Some("a".into()),
                conversation: Some(name.into()),
                text: "Go.".into(),
                ..Default::default()
            };
            let mut client = fixture.client();
            let turn = std::thread::spawn(move || client.call::<Send>(&params).map(drop));
            wait_until("the call to run", DEADLINE, || worktree(&fixture, name).join(name).exists().then_some(()));
            (name, turn)
        })
        .into();
    turns.iter().for_each(|_| fixture.reply("Done."));
    for (name, _) in &turns {
        fs::write(worktree(&fixture, name).join("go"), "").expect("a file");
    }
    for (name, turn) in turns {
        turn.join().expect("a client").expect("a turn");
        let dir = worktree(&fixture, name);
        let expected = format!("of {name}\n{}\n[exit status 0]", dir.display());
        assert_eq!(last_result(&fixture, name), (expected, false));
        assert_eq!(git(&dir, &["symbolic-ref", "--short", "HEAD"]), format!("conversation/{name}/work"));
    }
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("of main\n"));
    // The file tools know no other conversation that could have changed a file.
    write(&fixture, "review", "f", "again\n");
    write(&fixture, "main", "f", "of main again\n");
    assert_eq!(read(&worktree(&fixture, "review").join("f")).as_deref(), Some("again\n"));
    assert_eq!(read(&worktree(&fixture, "fix").join("f")).as_deref(), Some("of fix\n"));
    let branches: Vec<_> = list(&mut fixture.client(), false).into_iter().map(|found| found.worktree).collect();
    let branches: Vec<_> = branches.iter().map(|worktree| worktree.as_ref().map(|found| &*found.branch)).collect();
    assert_eq!(branches, [None, Some("conversation/fix/work"), Some("conversation/review/work")]);
}

#[test]
fn git_tools_work_on_the_branch_and_refuse_those_of_others() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "new", "x\n");
    commit(&fixture, "review", "Add new");
    assert_eq!(git(&fixture.workspace("a"), &["log", "-1", "--format=%s", "conversation/review/work"]), "Add new");
    assert_eq!(git(&fixture.workspace("a"), &["log", "-1", "--format=%s", "main"]), "Empty workspace");
    expect_tool(&fixture, "review", "git_branch", json!({"name": "conversation/review/second"}));
    expect_tool(&fixture, "review", "git_checkout", json!({"branch": "conversation/review/second"}));
    for (tool, params) in [
        ("git_branch", json!({"name": "topic"})),
        ("git_checkout", json!({"branch": "main"})),
        ("git_checkout", json!({"branch": "conversation/reviewer/work", "create": true})),
    ] {
        let (text, is_error) = call_tool(&fixture, "review", tool, params);
        assert!(is_error && text.contains("names that start with conversation/review/"), "{text}");
    }
    assert!(expect_tool(&fixture, "review", "git_log", json!({})).contains("Add new"));
    let (text, is_error) = call_tool(&fixture, "review", "git_init", json!({}));
    assert!(is_error && text.contains("already has a .git"), "{text}");
}

#[test]
fn a_crash_in_the_middle_heals_at_the_next_use() {
    let mut fixture = start_fixture(&["review"]);
    write(&fixture, "main", "f", "of main\n");
    commit(&fixture, "main", "First");
    // A clean-up filter would hold git up; so the crash is put together from what each step leaves.
    let (dir, admin) = (worktree(&fixture, "review"), fixture.workspace("a").join(".git/worktrees/review"));
    let mark = dir.with_file_name("review.creating");
    write(&fixture, "review", "g", "x\n");
    for step in 0..5 {
        fixture.kill();
        fs::write(&mark, "").expect("a file");
        match step {
            // Before git ran.
            0 => {
                fs::remove_dir_all(&admin).expect("removed");
                git(&fixture.workspace("a"), &["update-ref", "-d", "refs/heads/conversation/review/work"]);
                fs::remove_dir_all(&dir).expect("removed");
                fs::create_dir(&dir).expect("a directory");
            }
            // In git, before it wrote a file.
            1 => {
                fs::remove_file(admin.join("HEAD")).expect("removed");
                fs::remove_dir_all(&dir).expect("removed");
                fs::create_dir(&dir).expect("a directory");
            }
            // In git, with some files and a lock.
            2 => {
                fs::remove_file(dir.join("f")).expect("removed");
                fs::write(admin.join("index.lock"), "").expect("a file");
            }
            // Without its directory.
            3 => fs::remove_dir_all(&dir).expect("removed"),
            // After git, before the end.
            _ => {}
        }
        fixture.start();
        let (text, is_error) = bash(&fixture, "review", "cat f && git status --porcelain && git symbolic-ref HEAD");
        let expected = "of main\nrefs/heads/conversation/review/work\n[exit status 0]";
        assert_eq!((&*text, is_error), (expected, false), "step {step}");
        assert!(!mark.exists(), "step {step}");
    }
}

#[test]
fn a_kill_while_git_creates_it_loses_nothing() {
    let mut fixture = start_fixture(&["review"]);
    // Enough files that git is at work for a while.
    let many = fixture.workspace("a").join("many");
    fs::create_dir(&many).expect("a directory");
    for number in 0..4000 {
        fs::write(many.join(number.to_string()), "x\n").expect("a file");
    }
    commit(&fixture, "main", "Many files");
    let dir = worktree(&fixture, "review");
    for round in 0..3 {
        fixture.answer(Response::tool_call("c1", "bash", &json!({"command": "true"})));
        let params = SendParams {
            agent: Some("a".into()),
            conversation: Some("review".into()),
            text: "Go.".into(),
            ..Default::default()
        };
        let mut client = fixture.client();
        let turn = std::thread::spawn(move || client.call::<Send>(&params).map(drop));
        let is_begun = || dir.with_file_name("review.creating").exists() || dir.join("many").exists();
        wait_until("git to begin", DEADLINE, || is_begun().then_some(()));
        fixture.kill();
        let _ = turn.join().expect("a client");
        fixture.start();
        let (text, is_error) = bash(&fixture, "review", "ls many | wc -l; git status --porcelain");
        assert_eq!((&*text, is_error), ("4000\n[exit status 0]", false), "round {round}");
        close(&fixture, "review");
        assert!(!dir.exists());
    }
    git(&fixture.workspace("a"), &["fsck", "--strict"]);
}

#[test]
fn a_workspace_without_a_repository_is_refused_with_what_to_do() {
    let fixture = start_fixture(&["review"]);
    fs::remove_dir_all(fixture.workspace("a").join(".git")).expect("removed");
    let (text, is_error) = call_tool(&fixture, "review", "create_file", json!({"path": "f", "content": "x"}));
    assert!(is_error && text.starts_with("the workspace is not a git repository"), "{text}");
    assert!(!fixture.workspace("a").join("f").exists());
    // Tools that use no files go on.
    expect_tool(&fixture, "review", "list_models", json!({}));
    // A repository without a commit gets one, so that there is something to start from.
    write(&fixture, "main", "f", "of main\n");
    expect_tool(&fixture, "main", "git_init", json!({}));
    let (text, is_error) = bash(&fixture, "review", "cat f");
    assert_eq!((&*text, is_error), ("of main\n[exit status 0]", false));
    assert_eq!(status(&fixture), "");
    // In the mode of before, all is as it was.
    set_mode(&fixture, "shared");
    write(&fixture, "review", "h", "shared\n");
    assert_eq!(read(&fixture.workspace("a").join("h")).as_deref(), Some("shared\n"));
}

#[test]
fn it_stays_when_its_conversation_or_agent_gets_another_name() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    let rename = |from: &str, to: &str| {
        let params = RenameParams { agent: Some("a".into()), conversation: from.into(), name: to.into() };
        fixture.client().call::<Rename>(&params).expect("conversations.rename");
    };
    rename("review", "second");
    assert_eq!(bash(&fixture, "second", "cat f"), ("x\n[exit status 0]".into(), false));
    // Another one of that name gets a free one.
    open(&mut fixture.client(), "review");
    let (text, _) = bash(&fixture, "review", "ls; git symbolic-ref HEAD");
    assert_eq!(text, "refs/heads/conversation/review-2/work\n[exit status 0]");
    let params = ConfigParams { name: "a".into(), key: Some("name".into()), value: Some("b".into()) };
    fixture.client().call::<Config>(&params).expect("agent.config");
    let dir = fixture.home.agent_dir("b").join("worktrees/review");
    assert!(dir.is_dir());
    fixture.answer(Response::tool_call("c1", "bash", &json!({"command": "git add f && git commit -qm moved && pwd"})));
    fixture.reply("Done.");
    let params = SendParams {
        agent: Some("b".into()),
        conversation: Some("second".into()),
        text: "Go.".into(),
        ..Default::default()
    };
    fixture.client().call::<Send>(&params).expect("a turn");
    assert_eq!(git(&dir, &["log", "-1", "--format=%s"]), "moved");
}

#[test]
fn a_copy_of_the_home_connects_worktrees_with_its_own_repository() {
    let mut fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    commit(&fixture, "review", "Add f");
    fixture.stop();
    let (original, copy) = (fixture.home.path.clone(), fixture.home.temp_dir().join("copy"));
    assert!(Command::new("cp").arg("-a").args([&original, &copy]).status().expect("cp").success());
    let before = status_of(&worktree(&fixture, "review"));
    fixture.home.path = copy;
    fixture.start();
    expect_tool(&fixture, "review", "bash", json!({"command": "echo y >f && git commit -qam Change"}));
    assert_eq!(head(&fixture, "conversation/review/work^"), before.0);
    fixture.stop();
    // The original, which git has not heard of the copy, is as it was.
    fixture.home.path = original;
    fixture.start();
    assert_eq!(status_of(&worktree(&fixture, "review")), before);
    assert_eq!(bash(&fixture, "review", "cat f").0, "x\n[exit status 0]");
}

/// The newest commit of a worktree, and its changes.
fn status_of(dir: &Path) -> (String, String) {
    (git(dir, &["rev-parse", "HEAD"]), git(dir, &["status", "--porcelain"]))
}

#[test]
fn a_new_agent_with_the_name_of_before_has_its_own_worktree() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "of b\n");
    let params = ConfigParams { name: "a".into(), key: Some("name".into()), value: Some("b".into()) };
    fixture.client().call::<Config>(&params).expect("agent.config");
    fixture.create_agent("a", Some("any"));
    set_mode(&fixture, "worktree");
    open(&mut fixture.client(), "review");
    write(&fixture, "review", "f", "of a\n");
    fixture.answer(Response::tool_call("c1", "bash", &json!({"command": "git add f && git commit -qm moved"})));
    fixture.reply("Done.");
    let params = SendParams {
        agent: Some("b".into()),
        conversation: Some("review".into()),
        text: "Go.".into(),
        ..Default::default()
    };
    fixture.client().call::<Send>(&params).expect("a turn");
    let dir = fixture.home.agent_dir("b").join("worktrees/review");
    assert_eq!(git(&dir, &["show", "HEAD:f"]), "of b");
    assert_eq!(read(&worktree(&fixture, "review").join("f")).as_deref(), Some("of a\n"));
}

#[test]
fn a_file_that_is_written_to_connect_it_is_never_committed() {
    let mut fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    commit(&fixture, "review", "Add f");
    let dir = worktree(&fixture, "review");
    let inode = || fs::metadata(dir.join(".git")).expect("a file").ino();
    let before = inode();
    fixture.kill();
    // As a kill between the write and the rename leaves it.
    let temporary = dir.with_file_name(".new-0");
    fs::write(&temporary, "gitdir: x\n").expect("a file");
    fixture.start();
    assert_eq!(bash(&fixture, "review", "git status --porcelain").0, "[exit status 0]");
    assert!(!temporary.exists(), "left");
    assert_eq!(inode(), before, "what is right is not written");
}

#[test]
fn the_default_is_one_workspace_for_all() {
    let fixture = Fixture::builder(home()).models().tables(PROFILES).start();
    fixture.create_agent("a", Some("any"));
    open(&mut fixture.client(), "review");
    write(&fixture, "review", "f", "x\n");
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("x\n"));
    assert!(!fixture.home.agent_dir("a").join("worktrees").exists());
    assert_eq!(list(&mut fixture.client(), true)[1].worktree, None);
    let wrong = ConfigParams { name: "a".into(), key: Some("workspace".into()), value: Some("own".into()) };
    let refused = fixture.client().call::<Config>(&wrong).expect_err("refused");
    assert!(refused.to_string().contains("neither shared nor worktree"), "{refused}");
}
