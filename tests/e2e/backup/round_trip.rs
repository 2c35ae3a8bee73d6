//! A home, backed up and restored, is the same home.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::events::{List, ListParams};
use chorus_proto::methods::memory::{Add, AddParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use super::{archived, back_up, path, restored, verified};
use crate::home;

const CONFIG: &str =
    "[providers.router]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_file = \"router.key\"\n";

/// All kinds of files that a workspace can have.
fn work(dir: &Path) {
    fs::write(dir.join("run.sh"), "#!/bin/sh\n").expect("a file");
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("executable");
    fs::write(dir.join("read only"), "fixed").expect("a file");
    fs::set_permissions(dir.join("read only"), fs::Permissions::from_mode(0o444)).expect("read-only");
    fs::create_dir_all(dir.join("empty/deeper")).expect("directories");
    fs::write(dir.join(OsStr::from_bytes(b"100% \xff")), "odd").expect("a file");
    fs::write(dir.join("x".repeat(150)), vec![7; 300_000]).expect("a long name");
    symlink("/etc/passwd", dir.join("link")).expect("a link");
    fs::create_dir(dir.join("closed")).expect("a directory");
    fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o500)).expect("its mode");
}

fn fill(daemon: &Daemon, home: &Home) {
    let mut client = daemon.client();
    for agent in ["atlas", "gone", "quiet"] {
        client.init(agent);
    }
    client.append("atlas", "first");
    let one = client.save("atlas", "one").header.session_id;
    client.append("atlas", "second");
    let two = client.save("atlas", "two");
    client.append("atlas", "not saved");
    client.append("gone", "its last words");
    let pin = ["context", "pin", "the sky is blue", "--agent", "atlas"];
    chorusctl(home, pin).expect_success();
    chorusctl(home, ["session", "tag", one.as_str(), "kept", "--agent", "atlas"]).expect_success();
    client
        .call::<Add>(&AddParams { agent: Some("atlas".into()), text: "maps".into(), ..Default::default() })
        .expect("added");
    let session = two.header.session_id;
    client
        .call::<Delete>(&DeleteParams { conversation: None, agent: Some("atlas".into()), session, own: false })
        .expect("deleted");
    let destroy = DestroyParams { name: "gone".into(), keep_files: false, purge: false };
    client.call::<Destroy>(&destroy).expect("destroyed");
    work(&home.agent_dir("atlas").join("workspace"));
}

/// Returns what the commands say of a home, without what differs by its place and by the time.
fn said(home: &Home) -> Vec<String> {
    let commands: [&[&str]; 7] = [
        &["agent", "list", "--all", "--json"],
        &["agent", "show", "atlas", "--json"],
        &["context", "history", "--all-agents", "--json"],
        &["context", "show", "--agent", "atlas", "--json"],
        &["session", "show", "latest", "--agent", "atlas", "--json"],
        &["trash", "list", "--json"],
        &["memory", "list", "--agent", "atlas", "--json"],
    ];
    let place = home.path.to_str().expect("UTF-8");
    let mut said: Vec<String> = commands
        .iter()
        .map(|args| without_times(chorusctl(home, *args).expect_json()).to_string().replace(place, "HOME"))
        .collect();
    let audit = chorusctl(home, ["audit", "verify", "--json"]).expect_json();
    assert_eq!(audit["intact"], true);
    said.push(audit.to_string());
    said
}

/// Deadlines are kept as at least a minute from a start.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|key, _| key != "idle_deadline_at");
            map.values_mut().for_each(|inner| *inner = without_times(inner.take()));
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| *inner = without_times(inner.take())),
        _ => {}
    }
    value
}

fn events(daemon: &Daemon) -> Vec<String> {
    let list = daemon.client().call::<List>(&ListParams::default()).expect("events").events;
    list.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect()
}

/// Everything below a directory: kinds, modes and contents.
fn tree(dir: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let name = path.strip_prefix(below).expect("below").display().to_string();
        let mode = entry.metadata().expect("a mode").permissions().mode() & 0o777;
        if kind.is_dir() {
            found.push(format!("{name}/ {mode:o}"));
            tree(&path, below, found);
        } else if kind.is_symlink() {
            found.push(format!("{name} -> {}", fs::read_link(&path).expect("a link").display()));
        } else {
            found.push(format!("{name} {mode:o} {:?}", fs::read(&path).expect("a file")));
        }
    }
    found.sort();
}

fn agents(home: &Home) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["agents", "trash"] {
        tree(&home.path.join(part), &home.path, &mut found);
    }
    found
}

fn same(one: &Home, before: &[String], heard: &[String], two: &Home) {
    assert_eq!(agents(two), agents(one));
    for name in ["config.toml", "router.key", "db/fingerprint.key"] {
        assert_eq!(fs::read(two.path.join(name)).ok(), fs::read(one.path.join(name)).ok(), "{name}");
    }
    for (name, mode) in
        [("", 0o700), ("db", 0o700), ("db/live.db", 0o600), ("router.key", 0o600), ("agents/atlas", 0o700)]
    {
        let there = fs::metadata(two.path.join(name)).expect("it is there").permissions().mode();
        assert_eq!(there & 0o777, mode, "{name}");
    }
    let daemon = Daemon::start(two);
    assert_eq!(said(two), before);
    let again = events(&daemon);
    assert_eq!(&again[..heard.len()], heard);
    daemon.client().append("atlas", "and on");
    assert!(events(&daemon).len() > again.len(), "numbers of events go on");
    let doctor = chorusctl(two, ["doctor"]);
    assert!(!doctor.stdout.contains("FAIL"), "{}", doctor.stdout);
}

#[test]
fn everything_comes_back_from_a_directory_and_from_an_archive() {
    let one = home();
    one.create();
    fs::write(one.path.join("router.key"), "k-123456").expect("a key");
    fs::set_permissions(one.path.join("router.key"), fs::Permissions::from_mode(0o600)).expect("its mode");
    let daemon = Daemon::start_with(&one, CONFIG);
    fill(&daemon, &one);
    let (before, heard) = (said(&one), events(&daemon));
    let dir = one.temp_dir().join("backup");
    let told = chorusctl(&one, ["backup", path(&dir)]).expect_success();
    assert!(told.starts_with("backed up 2 agents, 1 session, "), "{told}");
    assert!(told.contains("contains keys: router.key"), "{told}");
    assert_eq!(fs::metadata(&dir).expect("the directory").permissions().mode() & 0o777, 0o700);
    let archive = archived(&one, "backup.tar");
    for source in [&dir, &archive] {
        let found = verified(&one, source);
        assert_eq!((found.agents, found.sessions, &*found.warnings), (2, 1, &[][..]));
        same(&one, &before, &heard, &restored(source));
    }
    let mut command = one.command("sh");
    let (ctl, file) = (one.bins.chorusctl, path(&archive));
    let script = format!("{ctl} backup - | {ctl} backup verify - && {ctl} backup restore - --home ../other < {file}");
    command.args(["-c", &script]);
    let told = run_command(command, b"").expect_success();
    assert!(told.contains("restored 2 agents, 1 session"), "{told}");
    assert!(one.temp_dir().join("other/db/live.db").is_file());
    assert!(back_up(&one, &dir).unreadable.is_empty());
}

#[test]
fn what_is_no_file_is_told_and_what_cannot_be_read_fails_and_the_rest_is_there() {
    let one = home();
    let Some(command) = one.unprivileged_daemon() else { return };
    let daemon = Daemon::start_command(&one, command);
    daemon.client().init("atlas");
    daemon.client().append("atlas", "hello");
    let workspace = one.agent_dir("atlas").join("workspace");
    fs::write(workspace.join("locked"), "secret").expect("a file");
    fs::set_permissions(workspace.join("locked"), fs::Permissions::from_mode(0o0)).expect("its mode");
    let mut fifo = one.command("mkfifo");
    fifo.arg(workspace.join("pipe"));
    run_command(fifo, b"").expect_success();
    let dir = one.temp_dir().join("backup");
    let told = chorusctl(&one, ["backup", path(&dir), "--quiet"]);
    assert!(!told.stderr.contains("workspace/pipe"), "{}", told.stderr);
    let told = chorusctl(&one, ["backup", path(&dir)]);
    assert_eq!(told.status, 1, "{}", told.stderr);
    assert!(
        told.stderr.contains("agents/atlas/workspace/locked: ") && told.stderr.contains("hint: "),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("workspace/pipe is a socket, pipe or device"), "{}", told.stderr);
    let two = restored(&dir);
    assert_eq!(Daemon::start(&two).client().message_texts("atlas"), ["hello"]);
    assert!(!two.agent_dir("atlas").join("workspace/locked").exists());
}

#[test]
fn a_large_file_takes_little_memory() {
    const BYTES: u64 = 96 << 20;
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    let large = fs::File::create(one.agent_dir("atlas").join("workspace/large")).expect("a file");
    large.set_len(BYTES).expect("a long one");
    let peak = || {
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid)).expect("the daemon's status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak").to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    };
    let before = peak();
    let archive = archived(&one, "backup.tar");
    assert!(fs::metadata(&archive).expect("the archive").len() > BYTES);
    assert!(back_up(&one, &one.temp_dir().join("backup")).bytes > BYTES);
    let grown = peak() - before;
    assert!(grown < 32 << 20, "{grown} bytes");
}
