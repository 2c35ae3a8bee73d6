//! Closing a conversation with a worktree: nothing that was written is lost.

use std::fs::{self, OpenOptions};
use std::process::Command;

use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::*;
use crate::conversations::list;

#[test]
fn changes_are_committed_and_a_branch_that_is_not_merged_stays() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    let printed = chorusctl(&fixture.home, ["conversations", "close", "review"]).expect_success();
    let lines: Vec<_> = printed.lines().take(5).collect();
    assert_eq!(
        lines,
        [
            "closed review",
            "committed its pending changes to conversation/review/work",
            "removed its git worktree",
            "kept the branch conversation/review/work: 1 commit not merged",
            "  merge it: chorusctl -C review conversations merge",
        ]
    );
    let workspace = fixture.workspace("a");
    assert!(!worktree(&fixture, "review").exists());
    assert_eq!(git(&workspace, &["show", "conversation/review/work:f"]), "x");
    assert_eq!(git(&workspace, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    let described = list(&mut fixture.client(), true).pop().and_then(|found| found.worktree).expect("a worktree");
    assert_eq!((&*described.branch, described.directory), ("conversation/review/work", None));
    // The next message has what the conversation had.
    assert_eq!(bash(&fixture, "review", "cat f").0, "x\n[exit status 0]");
    merge(&fixture, "review").expect("conversations.merge");
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.branch_deleted && closed.kept.is_none() && closed.unmerged_commits == 0, "{closed:?}");
    assert_eq!(git(&workspace, &["branch", "--list", "--format=%(refname:short)"]), "main");
    assert_eq!(list(&mut fixture.client(), true)[1].worktree, None);
    // One that never used a file has nothing to close.
    open(&mut fixture.client(), "other");
    assert_eq!(close(&fixture, "other").worktree, None);
}

#[test]
fn what_cannot_be_committed_keeps_the_directory() {
    let fixture = start_fixture(&["review"]);
    let dir = worktree(&fixture, "review");
    // Commits that are on no branch, a merge in progress, and files of another repository.
    let nested = "git init -q inner && cd inner && echo x >f && git add f && \
                  git -c user.name=a -c user.email=a@b commit -qm x";
    for (command, undo, why) in [
        ("git checkout -q --detach && git commit -q --allow-empty -m lost", "git checkout -q -", "a single commit"),
        (
            "git rev-parse HEAD >$(git rev-parse --git-dir)/MERGE_HEAD",
            "rm $(git rev-parse --git-dir)/MERGE_HEAD",
            "a merge",
        ),
        (nested, "git rm -q --cached inner; rm -rf inner", "nested repository"),
    ] {
        let (text, is_error) = bash(&fixture, "review", command);
        assert!(!is_error, "{text}");
        let closed = close(&fixture, "review").worktree.expect("a worktree");
        assert!(closed.kept.as_ref().is_some_and(|kept| kept.contains(why)), "{closed:?}");
        assert!(dir.is_dir());
        let (text, is_error) = bash(&fixture, "review", undo);
        assert!(!is_error, "{text}");
    }
    let printed = chorusctl(&fixture.home, ["conversations", "close", "review"]).expect_success();
    assert!(printed.contains("removed its git worktree"), "{printed}");
    assert!(!dir.exists());
}

#[test]
fn a_task_that_still_runs_keeps_it_too() {
    let fixture = start_fixture(&["review"]);
    expect_tool(&fixture, "review", "bash", json!({"command": "touch begun; sleep 600", "background": true}));
    let dir = worktree(&fixture, "review");
    wait_until("the task to begin", DEADLINE, || dir.join("begun").exists().then_some(()));
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert_eq!(closed.kept.as_deref(), Some("background task t1 is running in review"));
    assert!(dir.join("begun").exists());
    chorusctl(&fixture.home, ["tasks", "stop", "t1"]).expect_success();
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && closed.committed, "{closed:?}");
}

#[test]
fn a_save_commits_the_worktree_and_a_restore_brings_its_files_back() {
    let fixture = start_fixture(&["review"]);
    let set = |key: &str, value: &str| {
        let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
        fixture.client().call::<Config>(&params).expect("agent.config");
    };
    set("checkpoint_workspace", "true");
    write(&fixture, "review", "f", "first\n");
    let saved = super::super::save(&mut fixture.client(), Some("review"), "with files");
    let saved_commit = saved.header.workspace_commit.clone().expect("a commit");
    let dir = worktree(&fixture, "review");
    assert_eq!(git(&dir, &["rev-parse", "HEAD"]), saved_commit);
    assert_eq!(head(&fixture, &format!("refs/chorus/checkpoints/{saved_commit}")), saved_commit);
    assert!(!fixture.workspace("a").join("f").exists());
    write(&fixture, "review", "f", "second\n");
    commit(&fixture, "review", "Second");
    chorusctl(&fixture.home, ["-C", "review", "restore", &saved.short_id, "--files"]).expect_success();
    assert_eq!(read(&dir.join("f")).as_deref(), Some("first\n"));
    assert!(!fixture.workspace("a").join("f").exists());
    let _ = fs::metadata(&dir).expect("the worktree");
}

#[test]
fn a_worktree_of_somebody_else_under_the_same_name_stays() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    assert_eq!(close(&fixture, "review").worktree.map(|closed| closed.unmerged_commits), Some(1));
    let workspace = fixture.workspace("a");
    let other = fixture.home.temp_dir().join("others/review");
    git(&workspace, &["worktree", "add", "-q", "-b", "topic", other.to_str().expect("a path")]);
    fs::write(other.join("g"), "staged\n").expect("a file");
    git(&other, &["add", "g"]);
    let (text, is_error) = bash(&fixture, "review", "cat f");
    assert!(is_error && text.contains("git keeps another worktree under the name review"), "{text}");
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && closed.unmerged_commits == 1, "{closed:?}");
    assert_eq!(git(&other, &["status", "--porcelain", "--branch"]), "## topic\nA  g");
    git(&workspace, &["worktree", "remove", "--force", other.to_str().expect("a path")]);
    assert_eq!(bash(&fixture, "review", "cat f").0, "x\n[exit status 0]");
}

#[test]
fn nothing_is_removed_while_git_keeps_its_name_for_another_worktree() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    commit(&fixture, "review", "Add f");
    write(&fixture, "review", "g", "not committed\n");
    let (dir, workspace) = (worktree(&fixture, "review"), fixture.workspace("a"));
    // Somebody has removed what git keeps for it, and has its branch in a worktree with the same name.
    fs::remove_dir_all(workspace.join(".git/worktrees/review")).expect("removed");
    let other = fixture.home.temp_dir().join("others/review");
    git(&workspace, &["worktree", "add", "-q", other.to_str().expect("a path"), "conversation/review/work"]);
    let before = git(&other, &["rev-parse", "HEAD"]);
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.as_ref().is_some_and(|why| why.contains("git keeps another worktree")), "{closed:?}");
    assert_eq!(read(&dir.join("g")).as_deref(), Some("not committed\n"));
    assert_eq!(git(&other, &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&other, &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_not_deleted() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    close(&fixture, "review");
    let (workspace, other) = (fixture.workspace("a"), fixture.home.temp_dir().join("others/mine"));
    git(&workspace, &["worktree", "add", "-q", other.to_str().expect("a path"), "conversation/review/work"]);
    merge(&fixture, "review").expect("conversations.merge");
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && !closed.branch_deleted && closed.unmerged_commits == 0, "{closed:?}");
    assert_eq!(git(&other, &["show", "HEAD:f"]), "x");
    git(&workspace, &["worktree", "remove", other.to_str().expect("a path")]);
    assert!(close(&fixture, "review").worktree.is_some_and(|closed| closed.branch_deleted));
}

#[test]
fn changes_that_git_was_told_to_ignore_keep_it() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "one\n");
    commit(&fixture, "review", "Add f");
    let dir = worktree(&fixture, "review");
    for bit in ["assume-unchanged", "skip-worktree"] {
        expect_tool(
            &fixture,
            "review",
            "bash",
            json!({"command": format!("git update-index --{bit} f && echo {bit} >f")}),
        );
        let closed = close(&fixture, "review").worktree.expect("a worktree");
        assert!(closed.kept.as_ref().is_some_and(|why| why.contains(&format!("--no-{bit}"))), "{closed:?}");
        assert_eq!(read(&dir.join("f")), Some(format!("{bit}\n")));
        expect_tool(&fixture, "review", "bash", json!({"command": format!("git update-index --no-{bit} f")}));
    }
    // A sparse checkout has nothing there that could be lost.
    expect_tool(
        &fixture,
        "review",
        "bash",
        json!({"command": "git commit -qam Two && git update-index --skip-worktree f && rm f"}),
    );
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && !dir.exists(), "{closed:?}");
    assert_eq!(git(&fixture.workspace("a"), &["show", "conversation/review/work:f"]), "skip-worktree");
}

#[test]
fn one_that_was_only_half_created_hinders_neither_a_merge_nor_a_close() {
    let mut fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    commit(&fixture, "review", "Add f");
    let (dir, workspace) = (worktree(&fixture, "review"), fixture.workspace("a"));
    let mark = dir.with_file_name("review.creating");
    fixture.kill();
    let half = || {
        let _ = fs::remove_dir_all(workspace.join(".git/worktrees/review"));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("f"), "half").expect("a file");
        fs::write(&mark, "").expect("a file");
    };
    half();
    fixture.start();
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((merged.commits, merged.committed), (1, false));
    half();
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && closed.branch_deleted && !closed.committed, "{closed:?}");
    assert!(!dir.exists() && !mark.exists());
}

#[test]
fn the_agents_other_conversations_go_on_while_one_is_removed() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    let index = fixture.workspace("a").join(".git/worktrees/review/index");
    let aside = index.with_file_name("aside");
    fs::rename(&index, &aside).expect("renamed");
    // Git waits until somebody writes to it.
    assert!(Command::new("mkfifo").arg(&index).status().expect("mkfifo").success());
    let params = CloseParams { agent: Some("a".into()), conversation: "review".into() };
    let mut client = fixture.client();
    let closing = std::thread::spawn(move || client.call::<Close>(&params).expect("conversations.close"));
    let is_closed = || list(&mut fixture.client(), true).iter().any(|one| one.closed_at.is_some());
    wait_until("the conversation to be closed", DEADLINE, || is_closed().then_some(()));
    wait_until("git to read the index", DEADLINE, || is_git_running(&index).then_some(()));
    let mut client = fixture.client();
    let opening = std::thread::spawn(move || open(&mut client, "other"));
    wait_until("another conversation to be opened", DEADLINE, || opening.is_finished().then_some(()));
    assert!(!closing.is_finished());
    drop(OpenOptions::new().write(true).open(&index).expect("the other end"));
    fs::rename(&aside, &index).expect("renamed");
    let closed = closing.join().expect("a client").worktree.expect("a worktree");
    assert!(closed.kept.is_some() && worktree(&fixture, "review").join("f").exists(), "{closed:?}");
    let closed = close(&fixture, "review").worktree.expect("a worktree");
    assert!(closed.kept.is_none() && closed.committed, "{closed:?}");
}

/// Returns true if git lists the files of the worktree with this index.
fn is_git_running(index: &Path) -> bool {
    let variable = format!("GIT_DIR={}", index.parent().expect("a directory").display());
    fs::read_dir("/proc").expect("processes").flatten().any(|process| {
        let has = |file: &str, text: &str| {
            let bytes = fs::read(process.path().join(file)).unwrap_or_default();
            bytes.split(|byte| *byte == 0).any(|part| part == text.as_bytes())
        };
        has("cmdline", "ls-files") && has("environ", &variable)
    })
}
