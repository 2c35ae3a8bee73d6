//! `agent destroy` when something fails after its commit: the agent is gone all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::agent::{Destroy, DestroyParams, DestroyResult, Init, InitParams, List};
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::small_disk::SmallDisk;
use chorus_tests::strace::{Strace, threads};
use chorus_tests::{Daemon, Home, Need, skip_without};

use crate::home;

fn purge(client: &mut Client) -> Result<DestroyResult, CallError> {
    client.call::<Destroy>(&DestroyParams { name: "a".into(), keep_files: false, purge: true })
}

/// Nobody finds the agent any more, and its name is free.
fn assert_gone(client: &mut Client) {
    let agents = client.call::<List>(&Default::default()).expect("a list").agents;
    assert!(agents.iter().all(|agent| agent.name != "a"), "{agents:?}");
    let late = AppendParams { agent: Some("a".into()), text: Some("too late".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Append>(&late)), ErrorKind::AgentNotFound);
    let made = client.call::<Init>(&InitParams { name: "a".into(), ..Default::default() }).expect("the name is free");
    assert!(!made.revived);
    client.append("a", "of the new one");
    client.save("a", "of the new one");
}

fn in_trash(home: &Home) -> Vec<PathBuf> {
    let trash = fs::read_dir(home.path.join("trash")).into_iter().flatten();
    trash.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn a_purge_deletes_directories_that_may_not_be_written() {
    let home = home();
    let Some(command) = home.unprivileged_daemon() else { return };
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "unsaved");
    let cache = home.agent_dir("a").join("workspace/cache/inner");
    fs::create_dir_all(&cache).expect("a cache");
    fs::write(cache.join("file"), "kept for good").expect("a file");
    for dir in [cache.as_path(), cache.parent().expect("above it")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o500)).expect("its mode");
    }
    let gone = purge(&mut client).expect("destroyed");
    assert_eq!((gone.files, gone.warnings), (None, Vec::new()));
    assert_eq!(in_trash(&home), Vec::<PathBuf>::new());
    assert_gone(&mut client);
}

#[test]
fn a_purge_that_cannot_delete_everything_says_so_and_the_agent_is_gone() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "unsaved");
    let busy = home.agent_dir("a").join("workspace/busy");
    fs::create_dir(&busy).expect("a directory");
    let Some(mut disk) = SmallDisk::mount(&busy, 64) else { return };
    let said = chorusctl(&home, ["agent", "destroy", "a", "--purge", "--yes"]);
    let [entry] = &in_trash(&home)[..] else { panic!("{said:?}") };
    disk.set_path(entry.join("content/workspace/busy"));
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stderr.contains(entry.to_str().expect("a path")), "where the rest is: {said:?}");
    assert!(said.stderr.starts_with("warning: the purge is incomplete"), "{said:?}");
    assert_gone(&mut client);
    drop(disk);
    chorusctl(&home, ["trash", "empty", "--yes"]).expect_success();
    assert!(!entry.exists());
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["of the new one"]);
}

#[test]
fn a_context_that_cannot_be_ended_does_not_keep_the_agent() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "saved");
    client.save("a", "saved");
    client.init("b");
    let journal: Vec<u32> = threads(daemon.pid)["journal"].clone();
    let full = ["-e", "trace=pwrite64", "-e", "inject=pwrite64:error=ENOSPC"];
    let Some(full) = Strace::attach(&home, &journal, &full) else {
        return skip_without(Need::Ptrace, "strace cannot be used here");
    };
    let params = DestroyParams { name: "a".into(), keep_files: false, purge: false };
    let gone = client.call::<Destroy>(&params).expect("destroyed");
    // Refused in its turn, so that the journal's thread waits again and strace does not let go of it within a call.
    let after = AppendParams { agent: Some("b".into()), text: Some("no room".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Append>(&after)), ErrorKind::DiskFull);
    drop(full);
    assert!(Path::new(&gone.files.expect("a place in the trash")).is_dir());
    assert_gone(&mut client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["of the new one"]);
}
