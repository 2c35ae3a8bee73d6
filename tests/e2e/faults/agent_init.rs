//! `agent init` that fails at each of its steps leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::agent::{Destroy, DestroyParams, Init, InitParams};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::program::write_program;
use chorus_tests::rng::Rng;
use chorus_tests::strace::{Strace, is_permitted, threads, wait_until_quiet};
use chorus_tests::{Daemon, Home};

use crate::home;
use crate::system_calls::{all, sample};

fn params() -> InitParams {
    InitParams { name: "a".into(), ..Default::default() }
}

/// The name is free, nothing lies in agents/, and once the fault is gone the init works.
fn assert_nothing_left(home: &Home, client: &mut Client, at: &str) {
    let left: Vec<_> = fs::read_dir(home.path.join("agents")).expect("agents/").collect();
    assert!(left.is_empty(), "{at}: {left:?}");
    let agents = client.call::<chorus_proto::methods::agent::List>(&Default::default()).expect("a list").agents;
    assert!(agents.is_empty(), "{at}: {agents:?}");
}

#[test]
fn a_broken_template_is_named() {
    let broken: [(&str, &str); 3] =
        [("not JSON", "{"), ("no object", "[]"), ("an unusable value", r#"{"idle_timeout": "soon"}"#)];
    for (what, text) in broken {
        let home = home();
        home.create();
        fs::create_dir(home.path.join("template")).expect("template/");
        let template = home.path.join("template/agent.json");
        fs::write(&template, text).expect("written");
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let kind = expect_error_kind(client.call::<Init>(&params()));
        assert_eq!(kind, ErrorKind::InvalidConfig, "{what}");
        assert_nothing_left(&home, &mut client, what);
        fs::remove_file(template).expect("mended");
        client.init("a");
    }
}

#[test]
fn a_git_that_fails_is_quoted() {
    let home = home();
    let folder = home.temp_dir().join("bin");
    fs::create_dir(&folder).expect("bin/");
    let git = folder.join("git");
    for script in ["#!/bin/sh\necho 'no repositories today' >&2\nexit 1\n", "not a program"] {
        write_program(&git, script);
        let mut command = home.command(home.bins.chorusd);
        command.env("PATH", &folder);
        let daemon = Daemon::start_command(&home, command);
        let mut client = daemon.client();
        assert_eq!(expect_error_kind(client.call::<Init>(&params())), ErrorKind::GitFailed);
        assert_nothing_left(&home, &mut client, script);
    }
}

/// A `git` that fails at `verb`, and is the real one for everything else.
fn git_without(home: &Home, verb: &str) -> String {
    let folder = home.temp_dir().join("bin");
    fs::create_dir_all(&folder).expect("bin/");
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("#!/bin/sh\ncase \" $* \" in *\" {verb} \"*) exit 1;; esac\nPATH='{path}' exec git \"$@\"\n");
    write_program(folder.join("git"), script);
    format!("{}:{path}", folder.display())
}

/// Everything below `folder`, with what the files hold.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(tree(&path));
            found.insert(path, String::new());
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    found
}

/// An agent with a session, destroyed with its files kept.
fn kept(home: &Home) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "one");
    let params = DestroyParams { name: "a".into(), keep_files: true, purge: false };
    client.call::<Destroy>(&params).expect("destroyed");
}

#[test]
fn a_revival_that_fails_leaves_the_kept_files_as_they_were() {
    for (verb, gone) in [("init", &["docs", "workspace"][..]), ("commit", &["workspace/.git"])] {
        let home = home();
        kept(&home);
        for part in gone {
            fs::remove_dir_all(home.agent_dir("a").join(part)).expect("removed");
        }
        let before = tree(&home.agent_dir("a"));
        let mut command = home.command(home.bins.chorusd);
        command.env("PATH", git_without(&home, verb));
        let daemon = Daemon::start_command(&home, command);
        let revive = InitParams { model: Some("local/new".into()), ..params() };
        assert_eq!(expect_error_kind(daemon.client().call::<Init>(&revive)), ErrorKind::GitFailed);
        assert_eq!(tree(&home.agent_dir("a")), before, "{verb}, without {gone:?}");
        daemon.kill9();
        let daemon = Daemon::start(&home);
        assert!(daemon.client().call::<Init>(&params()).expect("revived").revived);
        assert!(home.agent_dir("a").join("docs").is_dir() && home.agent_dir("a").join("workspace/.git").is_dir());
    }
}

#[test]
fn a_revival_whose_sessions_cannot_be_read_is_done_all_the_same() {
    let home = home();
    kept(&home);
    let Some(command) = home.unprivileged_daemon() else { return };
    let sessions = home.sessions_dir("a");
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o300)).expect("its mode");
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    let revived = client.call::<Init>(&params()).expect("revived");
    assert!(revived.revived);
    assert_eq!(client.append("a", "two"), 1);
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o700)).expect("its mode");
    assert!(daemon.read_log().contains("cannot list the sessions"));
}

/// The disk fills at the Nth call of each kind that init makes itself.
#[test]
fn a_disk_that_fills_at_any_step_leaves_nothing() {
    let probe = home();
    if !is_permitted(&probe) {
        return;
    }
    let mut points = Vec::new();
    for (call, most) in [("mkdir", 6), ("fsync", 8), ("rename,renameat2", 4), ("write", 6)] {
        points.extend((1..=most).map(|number| (call, number)));
    }
    let chosen = sample(&points, if all() { points.len() } else { 10 }, &mut Rng::new(6));
    let (mut failed, home) = (0, probe);
    for (call, number) in chosen {
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        wait_until_quiet(daemon.pid);
        let threads = threads(daemon.pid);
        let inject = format!("inject={call}:error=ENOSPC:when={number}");
        let Some(blocking) = threads.get("blocking") else { continue };
        let strace = Strace::attach(&home, blocking, &["-e", &format!("trace={call}"), "-e", &inject]);
        let strace = strace.expect("strace attaches");
        let answer = client.call::<Init>(&params());
        drop(strace);
        let at = format!("{call} {number}");
        if answer.is_ok() {
            fs::remove_dir_all(home.agent_dir("a")).expect("removed for the next");
            daemon.kill9();
            for name in ["chorus.db", "chorus.db-wal", "chorus.db-shm"] {
                _ = fs::remove_file(home.path.join("db").join(name));
            }
            continue;
        }
        failed += 1;
        assert_eq!(expect_error_kind(answer), ErrorKind::DiskFull, "{at}");
        assert_nothing_left(&home, &mut client, &at);
    }
    assert!(failed >= 5, "only {failed} steps failed");
}
