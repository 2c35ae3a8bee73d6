//! `conversations.merge`.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::*;

#[test]
fn what_a_conversation_did_comes_to_main_with_what_it_had_not_committed() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "main", "f", "one\ntwo\nthree\n");
    commit(&fixture, "main", "First");
    expect_tool(&fixture, "main", "view", json!({"path": "f"}));
    expect_tool(&fixture, "review", "str_replace", json!({"path": "f", "old_str": "one", "new_str": "ONE"}));
    commit(&fixture, "review", "Shout");
    write(&fixture, "review", "g", "new\n");
    write(&fixture, "main", "h", "of main\n");
    commit(&fixture, "main", "Second");
    let printed = chorusctl(&fixture.home, ["conversations", "merge", "review"]).expect_success();
    assert_eq!(
        printed,
        "committed the pending changes of review\nmerged review into main: 2 commits, 2 files, +2 -1 lines\n"
    );
    let workspace = fixture.workspace("a");
    assert_eq!(read(&workspace.join("f")).as_deref(), Some("ONE\ntwo\nthree\n"));
    assert_eq!(read(&workspace.join("g")).as_deref(), Some("new\n"));
    assert_eq!(
        (status(&fixture), git(&workspace, &["log", "-1", "--format=%s"])),
        (String::new(), "Merge conversation review".into())
    );
    assert_eq!(git(&workspace, &["log", "-1", "--format=%(trailers:key=Conversation,valueonly)"]), "review");
    // `main` has not seen what came, and may not overwrite it unseen.
    let refused = call_tool(&fixture, "main", "create_file", json!({"path": "f", "content": "mine\n"}));
    assert_eq!(refused, ("edited meanwhile by review: read it again".into(), true));
    let again = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((again.commits, again.committed, again.commit), (0, false, head(&fixture, "main")));
    let printed = chorusctl(&fixture.home, ["-C", "review", "conversations", "merge"]).expect_success();
    assert_eq!(printed, "nothing to merge: main has all commits of review\n");
}

#[test]
fn a_merge_with_conflicts_changes_nothing_and_names_the_files() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "main", "f", "one\n");
    commit(&fixture, "main", "First");
    write(&fixture, "review", "f", "of the review\n");
    write(&fixture, "review", "g", "no conflict\n");
    commit(&fixture, "review", "Change f");
    write(&fixture, "main", "f", "of main\n");
    commit(&fixture, "main", "Change f, too");
    write(&fixture, "main", "untracked", "stays\n");
    let (before, listed) = (head(&fixture, "HEAD"), status(&fixture));
    let printed = chorusctl(&fixture.home, ["conversations", "merge", "review"]);
    assert_eq!(printed.status, 7);
    assert!(printed.stderr.contains("changed the same lines of f; the workspace is as it was"), "{}", printed.stderr);
    assert!(printed.stderr.contains("hint: resolve it there, then merge again"), "{}", printed.stderr);
    assert_eq!((head(&fixture, "HEAD"), status(&fixture)), (before, listed));
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("of main\n"));
    assert!(!fixture.workspace("a").join("g").exists() && !fixture.workspace("a").join(".git/MERGE_HEAD").exists());
    // As the hint says: the conversation merges the other branch into its own, with what it is allowed.
    let resolve = "git merge -q main || { echo both >f && git add f && git commit -qm Resolve; }";
    let (text, is_error) = bash(&fixture, "review", resolve);
    assert!(!is_error, "{text}");
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((merged.files, &*merged.into), (2, "main"));
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("both\n"));
}

#[test]
fn it_is_refused_where_something_could_be_lost() {
    let fixture = start_fixture(&["review", "unused"]);
    let refused = |name: &str| expect_error_kind(merge(&fixture, name));
    assert_eq!(refused("main"), ErrorKind::Denied);
    assert_eq!(refused("unused"), ErrorKind::NotFound);
    assert_eq!(refused("none"), ErrorKind::ConversationNotFound);
    write(&fixture, "main", "f", "one\n");
    fs::write(fixture.workspace("a").join(".gitignore"), "*.log\n").expect("a file");
    commit(&fixture, "main", "First");
    write(&fixture, "review", "f", "two\n");
    write(&fixture, "review", "new", "of the review\n");
    expect_tool(&fixture, "review", "bash", json!({"command": "echo x >a.log; git add -f a.log"}));
    // Changes that are not committed, and files that no commit has, are not overwritten.
    write(&fixture, "main", "f", "not committed\n");
    let why = merge(&fixture, "review").expect_err("refused");
    assert!(why.to_string().contains("has changes that are not committed"), "{why}");
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("not committed\n"));
    commit(&fixture, "main", "Change");
    git(&fixture.workspace("a"), &["reset", "--hard", "--quiet", "HEAD~1"]);
    for name in ["new", "a.log"] {
        fs::write(fixture.workspace("a").join(name), "of main\n").expect("a file");
        assert_eq!(refused("review"), ErrorKind::Conflict, "{name}");
        assert_eq!(read(&fixture.workspace("a").join(name)).as_deref(), Some("of main\n"));
        fs::remove_file(fixture.workspace("a").join(name)).expect("removed");
    }
    // A program that the repository names for merges is not run.
    git(&fixture.workspace("a"), &["config", "merge.x.driver", "touch ran"]);
    assert_eq!(refused("review"), ErrorKind::GitFailed);
    git(&fixture.workspace("a"), &["config", "--unset", "merge.x.driver"]);
    // Nor is anything merged while a turn runs.
    for name in ["main", "review"] {
        let gate = format!("hold {name}");
        fixture.answer(Response::empty().gate(&gate));
        let params = SendParams {
            agent: Some("a".into()),
            conversation: Some(name.into()),
            text: "Wait.".into(),
            ..Default::default()
        };
        let mut client = fixture.client();
        let turn = std::thread::spawn(move || client.call::<Send>(&params).map(drop));
        fixture.models().wait_for_gate(&gate);
        let why = merge(&fixture, "review").expect_err("refused");
        assert!(why.to_string().contains(&format!("a turn is running in {name}")), "{why}");
        chorusctl(&fixture.home, ["-C", name, "cancel"]).expect_success();
        let _ = turn.join().expect("a client");
    }
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert!(merged.files == 3 && status(&fixture).is_empty(), "{merged:?}");
}

#[test]
fn a_merge_that_a_crash_cut_off_is_completed_by_the_next() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "main", "f", "one\n");
    commit(&fixture, "main", "First");
    write(&fixture, "review", "f", "two\n");
    commit(&fixture, "review", "Change f");
    let workspace = fixture.workspace("a");
    // As it is after the files and before the commit.
    let tree = git(&workspace, &["merge-tree", "--write-tree", "HEAD", "conversation/review/work"]);
    git(&workspace, &["read-tree", "-m", "-u", "HEAD", &tree]);
    assert_eq!(status(&fixture), "M  f");
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((merged.commits, status(&fixture)), (1, String::new()));
    assert_eq!(read(&workspace.join("f")).as_deref(), Some("two\n"));
}

#[test]
fn files_that_a_kill_left_half_merged_are_put_back_and_merged_again() {
    let mut fixture = start_fixture(&["review"]);
    for (name, text) in [("f", "one\n"), ("gone", "old\n"), ("later", "old\n"), ("untouched", "same\n")] {
        write(&fixture, "main", name, text);
    }
    commit(&fixture, "main", "First");
    let change = "printf 'two\\nthree\\nfour\\n' >f; echo new >later; mkdir dir; echo x >dir/new; git rm -q gone; git add --all; \
                  git commit -qm Change";
    expect_tool(&fixture, "review", "bash", json!({ "command": change }));
    let (workspace, branch) = (fixture.workspace("a"), "conversation/review/work");
    let tree = git(&workspace, &["merge-tree", "--write-tree", "HEAD", branch]);
    let tip = git(&workspace, &["commit-tree", &tree, "-p", "HEAD", "-p", branch, "-m", "Merge"]);
    // As git is killed while it writes the files: some are new, one is half written, some are old, and so is the index.
    fixture.kill();
    let record = worktree(&fixture, ".merging");
    fs::write(&record, format!("{} {tip}\n", head(&fixture, "HEAD"))).expect("a file");
    fs::remove_file(workspace.join("gone")).expect("removed");
    fs::create_dir(workspace.join("dir")).expect("a directory");
    fs::write(workspace.join("dir/new"), "x\n").expect("a file");
    fs::write(workspace.join("f"), "two\nth").expect("a file");
    fs::write(workspace.join(".git/index.lock"), "").expect("a file");
    fixture.start();
    // What somebody has written since stays, and is named.
    fs::write(workspace.join("later"), "mine\n").expect("a file");
    let printed = chorusctl(&fixture.home, ["conversations", "merge", "review"]);
    let expected = "a merge into the workspace of a was cut off, and changed since: later";
    assert!(printed.status == 1 && printed.stderr.contains(expected), "{}", printed.stderr);
    assert_eq!(expect_error_kind(merge(&fixture, "review")), ErrorKind::MergeIncomplete);
    assert_eq!(read(&workspace.join("later")).as_deref(), Some("mine\n"));
    assert_eq!(read(&workspace.join("f")).as_deref(), Some("two\nth"));
    // As the hint says.
    fs::remove_file(workspace.join("later")).expect("removed");
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((merged.commits, merged.files, status(&fixture)), (1, 4, String::new()));
    assert_eq!(read(&workspace.join("f")).as_deref(), Some("two\nthree\nfour\n"));
    assert!(!record.exists() && !workspace.join("gone").exists());
    assert_eq!(read(&workspace.join("dir/new")).as_deref(), Some("x\n"));
}

#[test]
fn a_kill_while_files_are_merged_is_healed_by_the_next_merge() {
    let mut fixture = start_fixture(&["review"]);
    let many = "mkdir many && for i in $(seq 4000); do echo $i >many/$i; done && git add many && git commit -qm Many";
    expect_tool(&fixture, "review", "bash", json!({ "command": many }));
    let mut client = fixture.client();
    let params = MergeParams { agent: Some("a".into()), conversation: "review".into() };
    let merging = std::thread::spawn(move || client.call::<Merge>(&params).map(drop));
    let workspace = fixture.workspace("a");
    wait_until("git to write files", DEADLINE, || workspace.join("many").exists().then_some(()));
    fixture.kill();
    let _ = merging.join().expect("a client");
    fixture.start();
    merge(&fixture, "review").expect("conversations.merge");
    assert_eq!(status(&fixture), "");
    assert_eq!(fs::read_dir(workspace.join("many")).expect("a directory").count(), 4000);
    assert_eq!(head(&fixture, "HEAD^2"), head(&fixture, "conversation/review/work"));
}

#[test]
fn hints_name_the_agent_that_the_merge_was_about() {
    let fixture = start_fixture(&["review"]);
    fixture.create_agent("b", Some("any"));
    chorusctl(&fixture.home, ["agent", "use", "b"]).expect_success();
    write(&fixture, "review", "f", "of the review\n");
    write(&fixture, "main", "f", "of main\n");
    commit(&fixture, "main", "Add f");
    let printed = chorusctl(&fixture.home, ["--agent", "a", "conversations", "merge", "review"]);
    assert!(printed.stderr.contains("chorusctl --agent a -C review send"), "{}", printed.stderr);
    let printed = chorusctl(&fixture.home, ["--agent", "a", "conversations", "close", "review"]).expect_success();
    for command in
        ["merge it: chorusctl --agent a -C review conversations merge", "chorusctl --agent a -C review restore"]
    {
        assert!(printed.contains(command), "{printed}");
    }
}

#[test]
fn a_conversation_that_was_closed_can_still_be_merged() {
    let fixture = start_fixture(&["review"]);
    write(&fixture, "review", "f", "x\n");
    close(&fixture, "review");
    let merged = merge(&fixture, "review").expect("conversations.merge");
    assert_eq!((merged.commits, merged.files), (1, 1));
    assert_eq!(read(&fixture.workspace("a").join("f")).as_deref(), Some("x\n"));
    let params = NewParams { agent: Some("a".into()), name: "review".into(), ..Default::default() };
    fixture.client().call::<New>(&params).expect("opened again");
    assert_eq!(bash(&fixture, "review", "cat f").0, "x\n[exit status 0]");
}
