//! `checkpoint_workspace`: a save commits the files of the workspace, and `restore --files` brings them back.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Restore, RestoreParams, RestoreResult, Save, SaveParams, SaveResult};
use chorus_proto::{CallError, Client, Trigger};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;
use crate::tools::git::git;

/// An agent whose saves commit its workspace.
fn begun(home: &Home) -> (Daemon, Client, PathBuf) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("a");
    set(&mut client, "checkpoint_workspace", "true");
    let workspace = home.agent_dir("a").join("workspace");
    (daemon, client, workspace)
}

fn set(client: &mut Client, key: &str, value: &str) {
    let (key, value) = (Some(key.to_owned()), Some(value.into()));
    client.call::<Config>(&ConfigParams { name: "a".into(), key, value }).expect("agent.config");
}

fn save(client: &mut Client, description: &str) -> SaveResult {
    let params = SaveParams { agent: Some("a".into()), description: Some(description.into()), ..Default::default() };
    client.call::<Save>(&params).expect("context.save")
}

fn restore_files(client: &mut Client, session: &str) -> Result<RestoreResult, CallError> {
    let params = RestoreParams { agent: Some("a".into()), session: session.into(), files: true, ..Default::default() };
    client.call::<Restore>(&params)
}

fn head(workspace: &Path) -> String {
    git(workspace, &["rev-parse", "HEAD"])
}

fn read(workspace: &Path, file: &str) -> String {
    fs::read_to_string(workspace.join(file)).unwrap_or_default()
}

#[test]
fn a_save_commits_what_changed_and_names_the_commit() {
    let home = home();
    let (daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("plan.md"), "first\n").expect("a file");
    let first = save(&mut client, "with a plan");
    assert_eq!(first.warnings, Vec::<String>::new());
    let commit = first.session.header.workspace_commit.clone().expect("a commit");
    assert_eq!((head(&workspace), git(&workspace, &["status", "--porcelain"])), (commit.clone(), String::new()));
    assert_eq!(git(&workspace, &["log", "-1", "--format=%s %an"]), "Checkpoint: with a plan a");
    // Nothing has changed: no other commit, and the same one is named.
    let second = save(&mut client, "again");
    assert_eq!((second.session.header.workspace_commit, head(&workspace)), (Some(commit.clone()), commit.clone()));
    let text = fs::read_to_string(&first.session.file_path).expect("the file");
    assert!(text.contains(&format!("\n  \"workspace_commit\": \"{commit}\",\n")), "{text}");
    // A branch that is reset keeps no commit from those who come back to it.
    git(&workspace, &["reset", "--hard", "--quiet", "HEAD~1"]);
    git(&workspace, &["reflog", "expire", "--expire=now", "--all"]);
    git(&workspace, &["gc", "--prune=now", "--quiet"]);
    restore_files(&mut client, &first.session.short_id).expect("restored");
    assert_eq!(read(&workspace, "plan.md"), "first\n");
    // A tag changes the header and nothing of this, and a rebuild reads it back.
    chorusctl(&home, ["session", "tag", &first.session.short_id, "t"]).expect_success();
    daemon.kill9();
    let daemon = Daemon::start(&home);
    chorusctl(&home, ["doctor", "--rebuild"]);
    assert_eq!(daemon.client().get_session("a", &first.session.short_id).0.header.workspace_commit, Some(commit));
}

#[test]
fn a_save_never_fails_because_git_did() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("x"), "x").expect("a file");
    // What another git left, or holds right now.
    fs::write(workspace.join(".git/index.lock"), "").expect("a file");
    let saved = save(&mut client, "locked");
    assert!(saved.warnings[0].starts_with("cannot commit the workspace: "), "{:?}", saved.warnings);
    assert_eq!((saved.session.header.workspace_commit, saved.session.header.message_count), (None, 1));
    fs::remove_file(workspace.join(".git/index.lock")).expect("removed");
    // A program that the repository names is not run.
    git(&workspace, &["config", "filter.x.clean", "touch ran"]);
    assert!(save(&mut client, "hostile").warnings[0].contains("filter.x.clean"));
    git(&workspace, &["config", "--unset", "filter.x.clean"]);
    fs::write(workspace.join(".git/MERGE_HEAD"), head(&workspace)).expect("a file");
    assert!(save(&mut client, "merging").warnings[0].contains("a merge is in progress"));
    fs::remove_dir_all(workspace.join(".git")).expect("removed");
    let output = chorusctl(&home, ["context", "save", "gone"]);
    assert!(output.stderr.contains("warning: cannot commit the workspace: "), "{}", output.stderr);
    output.expect_success();
    let why = restore_files(&mut client, "latest");
    assert_eq!(expect_error_kind(why), ErrorKind::NotFound);
}

#[test]
fn a_save_says_which_repositories_its_commit_does_not_have() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    let inner = workspace.join("inner");
    fs::create_dir(&inner).expect("a directory");
    git(&inner, &["init", "--quiet"]);
    git(&inner, &["commit", "--quiet", "--allow-empty", "--message=x"]);
    for description in ["new", "known"] {
        let saved = save(&mut client, description);
        assert_eq!(saved.session.header.workspace_commit, Some(head(&workspace)));
        assert_eq!(saved.warnings, ["the commit does not include nested repositories: inner"]);
    }
}

#[test]
fn files_come_back_in_a_new_commit_and_ignored_and_unknown_ones_stay() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("plan.md"), "first\n").expect("a file");
    fs::write(workspace.join(".gitignore"), "*.log\n").expect("a file");
    fs::create_dir(workspace.join("src")).expect("a directory");
    fs::write(workspace.join("src/gone.rs"), "fn main() {}\n").expect("a file");
    let first = save(&mut client, "first").session;
    client.append("a", "two");
    fs::write(workspace.join("plan.md"), "second\n").expect("a file");
    fs::remove_dir_all(workspace.join("src")).expect("removed");
    fs::write(workspace.join("later.md"), "later\n").expect("a file");
    let second = save(&mut client, "second").session;
    fs::write(workspace.join("build.log"), "ignored\n").expect("a file");
    fs::write(workspace.join("notes.txt"), "unknown to git\n").expect("a file");

    let text = chorusctl(&home, ["context", "restore", &first.short_id, "--files"]).expect_success();
    assert!(text.contains("restored the workspace files (commit "), "{text}");
    assert_eq!(read(&workspace, "plan.md"), "first\n");
    assert_eq!((read(&workspace, "src/gone.rs").len(), workspace.join("later.md").exists()), (13, false));
    assert_eq!((read(&workspace, "build.log").len(), read(&workspace, "notes.txt").len()), (8, 15));
    // The branch goes on: both saves are in its history.
    assert_eq!(
        git(&workspace, &["log", "-3", "--format=%s"]).lines().collect::<Vec<_>>(),
        [format!("Files of {}", first.header.session_id), "Checkpoint: second".into(), "Checkpoint: first".into()]
    );
    assert_eq!(client.message_texts("a"), ["one"]);
    let back = restore_files(&mut client, &second.short_id).expect("restored");
    assert_eq!((back.files_commit, read(&workspace, "plan.md")), (Some(head(&workspace)), "second\n".into()));
    // Once more is no other commit.
    let again = restore_files(&mut client, &second.short_id).expect("restored");
    assert_eq!(again.files_commit, Some(head(&workspace)));
}

#[test]
fn changes_that_would_be_lost_keep_everything_as_it_is() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("plan.md"), "first\n").expect("a file");
    let first = save(&mut client, "first").session;
    fs::remove_file(workspace.join("plan.md")).expect("removed");
    let bare = save(&mut client, "without").session;
    client.append("a", "two");
    let texts = client.message_texts("a");
    // Unknown to git, and in the way of a file that would come back.
    fs::write(workspace.join("plan.md"), "mine\n").expect("a file");
    let output = chorusctl(&home, ["context", "restore", &first.short_id, "--files"]);
    let said = output.expect_failure_with_hint(6);
    assert!(
        said.contains("would be lost") && said.contains("plan.md") && said.contains("commit or stash them"),
        "{said}"
    );
    assert_eq!(read(&workspace, "plan.md"), "mine\n");
    // Changed, and not committed.
    set(&mut client, "checkpoint_workspace", "false");
    git(&workspace, &["add", "plan.md"]);
    assert_eq!(expect_error_kind(restore_files(&mut client, &bare.short_id)), ErrorKind::Denied);
    assert_eq!((client.message_texts("a"), read(&workspace, "plan.md")), (texts, "mine\n".into()));
    // Without --files nothing of the workspace is asked.
    client.restore("a", &first.short_id);
    assert_eq!(read(&workspace, "plan.md"), "mine\n");
}

#[test]
fn ignored_files_in_the_way_are_not_overwritten() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("ä.log"), "kept\n").expect("a file");
    fs::write(workspace.join("out"), "a file\n").expect("a file");
    let first = save(&mut client, "first").session;
    fs::remove_file(workspace.join("ä.log")).expect("removed");
    fs::remove_file(workspace.join("out")).expect("removed");
    fs::write(workspace.join(".gitignore"), "*.log\n").expect("a file");
    fs::create_dir(workspace.join("out")).expect("a directory");
    fs::write(workspace.join("out/known"), "known to git\n").expect("a file");
    save(&mut client, "second");
    fs::write(workspace.join("out/x.log"), "only here\n").expect("a file");
    let output = chorusctl(&home, ["context", "restore", &first.short_id, "--files"]);
    let said = output.expect_failure_with_hint(6);
    assert!(said.contains("out/x.log would be overwritten"), "{said}");
    assert_eq!(read(&workspace, "out/x.log"), "only here\n");
    fs::remove_file(workspace.join("out/x.log")).expect("removed");
    fs::write(workspace.join("ä.log"), "only here\n").expect("a file");
    assert_eq!(expect_error_kind(restore_files(&mut client, &first.short_id)), ErrorKind::Denied);
    assert_eq!(read(&workspace, "ä.log"), "only here\n");
    fs::remove_file(workspace.join("ä.log")).expect("removed");
    restore_files(&mut client, &first.short_id).expect("restored");
    assert_eq!((read(&workspace, "ä.log"), read(&workspace, "out")), ("kept\n".into(), "a file\n".into()));
}

#[test]
fn files_that_were_brought_back_half_way_are_a_second_try_away() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("plan.md"), "first\n").expect("a file");
    let first = save(&mut client, "first").session;
    let commit = first.header.workspace_commit.clone().expect("a commit");
    client.append("a", "two");
    fs::write(workspace.join("plan.md"), "second\n").expect("a file");
    fs::write(workspace.join("later.md"), "later\n").expect("a file");
    save(&mut client, "second");
    set(&mut client, "checkpoint_workspace", "false");
    // There can be no commit: the files go back.
    let lock = workspace.join(".git").join(format!("{}.lock", git(&workspace, &["symbolic-ref", "HEAD"])));
    fs::write(&lock, "").expect("a file");
    let back = restore_files(&mut client, &first.short_id).expect("the messages");
    assert!(back.warnings.iter().any(|warning| warning.contains("its files were not")), "{:?}", back.warnings);
    assert_eq!((read(&workspace, "plan.md"), read(&workspace, "later.md")), ("second\n".into(), "later\n".into()));
    assert_eq!(git(&workspace, &["status", "--porcelain"]), "");
    fs::remove_file(&lock).expect("removed");
    // As where the daemon died between the files and their commit.
    git(&workspace, &["read-tree", "-m", "-u", "HEAD", &commit]);
    let before = head(&workspace);
    let back = restore_files(&mut client, &first.short_id).expect("restored");
    assert_eq!((back.files_commit, read(&workspace, "plan.md")), (Some(head(&workspace)), "first\n".into()));
    assert_eq!(
        (git(&workspace, &["rev-parse", "HEAD~1"]), git(&workspace, &["status", "--porcelain"])),
        (before, String::new())
    );
    // With anything of one's own beside it, it is refused as ever.
    git(&workspace, &["read-tree", "-m", "-u", "HEAD", "HEAD~1"]);
    fs::write(workspace.join("plan.md"), "mine\n").expect("a file");
    assert_eq!(expect_error_kind(restore_files(&mut client, &first.short_id)), ErrorKind::Denied);
    assert_eq!(read(&workspace, "plan.md"), "mine\n");
}

#[test]
fn what_a_file_says_of_its_commit_is_not_believed() {
    let home = home();
    let (_daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    // The first commits of two workspaces that are made in one second are the same.
    fs::write(workspace.join("a.md"), "a\n").expect("a file");
    let first = save(&mut client, "first").session;
    let commit = first.header.workspace_commit.clone().expect("a commit");
    let text = fs::read_to_string(&first.file_path).expect("the file");
    client.init("b");
    for forged in ["--upload-pack=touch x", "HEAD", &"0".repeat(40)] {
        fs::write(&first.file_path, text.replace(&commit, forged)).expect("written");
        let scanned = wait_until("the file to be read anew", DEADLINE, || {
            chorusctl(&home, ["doctor", "--rebuild"]);
            let session = client.get_session("a", &first.short_id).0;
            (session.header.workspace_commit.as_deref() == Some(forged)).then_some(session)
        });
        assert_eq!(expect_error_kind(restore_files(&mut client, &scanned.short_id)), ErrorKind::NotFound, "{forged}");
    }
    fs::write(&first.file_path, &text).expect("written");
    chorusctl(&home, ["doctor", "--rebuild"]);
    // Another agent's workspace does not have it either.
    let params = RestoreParams { agent: Some("b".into()), session: first.short_id, files: true, ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Restore>(&params)), ErrorKind::NotFound);
    assert!(!workspace.join("x").exists() && client.message_texts("b").is_empty());
}

#[test]
fn saves_that_nobody_asks_for_commit_too() {
    let home = home();
    let (daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    fs::write(workspace.join("idle.md"), "idle\n").expect("a file");
    set(&mut client, "idle_timeout", "1s");
    let idle = wait_until("the idle save", DEADLINE, || client.history("a").pop());
    assert_eq!((idle.header.trigger, idle.header.workspace_commit), (Trigger::IdleTimeout, Some(head(&workspace))));
    set(&mut client, "idle_timeout", "0");
    client.append("a", "two");
    fs::write(workspace.join("stop.md"), "stop\n").expect("a file");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    let stopped = daemon.client().history("a").remove(0);
    assert_eq!((stopped.header.trigger, stopped.header.workspace_commit), (Trigger::Shutdown, Some(head(&workspace))));
    assert_eq!(git(&workspace, &["log", "-2", "--format=%s"]), "Checkpoint: shutdown\nCheckpoint: idle_timeout");
}

#[test]
fn a_checkpoint_that_takes_too_long_leaves_no_lock_behind() {
    let home = home();
    let (daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    // A hole that takes git minutes to read, and no room on the disk.
    fs::File::create(workspace.join("huge")).and_then(|file| file.set_len(64 << 30)).expect("a file");
    assert!(daemon.terminate().success());
    assert!(!workspace.join(".git/index.lock").exists());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let stopped = client.history("a").remove(0);
    assert_eq!((stopped.header.trigger, stopped.header.workspace_commit), (Trigger::Shutdown, None));
    fs::remove_file(workspace.join("huge")).expect("removed");
    fs::write(workspace.join("small"), "small\n").expect("a file");
    client.append("a", "two");
    assert_eq!(save(&mut client, "goes on").warnings, Vec::<String>::new());
}

#[test]
fn a_kill_in_the_middle_of_a_checkpoint_loses_nothing() {
    let home = home();
    let (daemon, mut client, workspace) = begun(&home);
    client.append("a", "one");
    // Enough to keep git busy for a while.
    for n in 0..2000 {
        fs::write(workspace.join(format!("file-{n}")), format!("{n}\n").repeat(500)).expect("a file");
    }
    let params = SaveParams { agent: Some("a".into()), ..Default::default() };
    let saving = std::thread::spawn(move || drop(client.call::<Save>(&params)));
    let lock = workspace.join(".git/index.lock");
    wait_until("git to begin", DEADLINE, || lock.exists().then_some(()));
    daemon.kill9();
    saving.join().expect("the one who saves");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!((client.message_texts("a"), client.history("a").len()), (vec!["one".to_owned()], 0));
    // Whatever git has left, a save goes on; without its lock so does git.
    save(&mut client, "once more");
    let _ = fs::remove_file(&lock);
    let saved = save(&mut client, "and again");
    assert_eq!(saved.session.header.workspace_commit, Some(head(&workspace)), "{:?}", saved.warnings);
    assert_eq!(
        (git(&workspace, &["status", "--porcelain"]), git(&workspace, &["fsck", "--no-dangling"])),
        Default::default()
    );
}
