//! P23: a daemon whose files are deleted, moved or replaced acknowledges nothing more, says so, and ends.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::{CallError, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home};

use super::{copy_all, journal, try_append};
use crate::home;

/// A change to the files, with the name that the daemon tells of it.
type Change = (&'static str, fn(&Home), &'static str);

/// All of them.
const CHANGES: [Change; 9] = [
    ("rm live.db", |home| fs::remove_file(journal(home)).expect("removed"), "live.db"),
    ("rm live.db-wal", |home| fs::remove_file(journal(home).with_extension("db-wal")).expect("removed"), "live.db-wal"),
    ("rm chorus.db", |home| fs::remove_file(home.path.join("db/chorus.db")).expect("removed"), "chorus.db"),
    ("rm -r db", |home| fs::remove_dir_all(home.path.join("db")).expect("removed"), "db"),
    ("mv db", |home| fs::rename(home.path.join("db"), home.path.join("db.old")).expect("moved"), "db"),
    ("mv home", |home| fs::rename(&home.path, home.temp_dir().join("elsewhere")).expect("moved"), "while the daemon"),
    ("a copy of db/ in its place", replaced, "db"),
    ("a backup written over live.db", |home| over(&journal(home)), "live.db"),
    ("a backup written over live.db-wal", |home| over(&journal(home).with_extension("db-wal")), "live.db-wal"),
];

/// As `rsync --delete` does: each file is written beside its place and renamed.
fn replaced(home: &Home) {
    let backup = home.temp_dir().join("backup");
    copy_all(&home.path.join("db"), &backup);
    for entry in fs::read_dir(&backup).expect("the backup") {
        let entry = entry.expect("an entry");
        fs::rename(entry.path(), home.path.join("db").join(entry.file_name())).expect("renamed");
    }
}

/// As `cp` does: the file stays, its content does not.
fn over(path: &Path) {
    let bytes = fs::read(path).expect("the file");
    fs::write(path, bytes).expect("written");
}

fn running(home: &Home) -> Daemon {
    let daemon = Daemon::start(home);
    daemon.client().init("a");
    daemon.client().append("a", "before");
    daemon
}

fn ended(mut daemon: Daemon, what: &str, name: &str) {
    let status = daemon.wait();
    // The unit of `daemon install` starts it again after other failures: here that could begin an empty home.
    assert_eq!(status.code(), Some(6), "{what}: {status}");
    let log = daemon.read_log();
    assert!(log.contains(name) && log.contains("hint: ") && !log.contains("panicked"), "{what}: {log}");
}

#[test]
fn nothing_is_acknowledged_into_files_that_are_gone() {
    for (what, change, name) in CHANGES.into_iter().filter(|(_, _, name)| *name != "chorus.db") {
        let home = home();
        let daemon = running(&home);
        let mut client = daemon.client();
        change(&home);
        match try_append(&mut client, "a", "after") {
            Err(CallError::Rpc(error)) => assert_eq!(error.kind(), ErrorKind::StorageFailed, "{what}: {error:?}"),
            // It had seen it by itself, and was gone before the request was read.
            Err(CallError::Io(_)) => {}
            other => panic!("{what}: {other:?}"),
        }
        ended(daemon, what, name);
    }
}

#[test]
fn a_daemon_that_nobody_talks_to_sees_it_within_seconds() {
    let daemons: Vec<_> = CHANGES
        .into_iter()
        .map(|(what, change, name)| {
            let home = home();
            let daemon = running(&home);
            change(&home);
            (what, name, home, daemon)
        })
        .collect();
    let begun = Instant::now();
    for (what, name, _home, daemon) in daemons {
        ended(daemon, what, name);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_backup_that_took_the_place_of_the_files_is_not_touched_by_the_daemon_that_ends() {
    let home = home();
    let daemon = running(&home);
    let backup = home.temp_dir().join("kept");
    copy_all(&home.path.join("db"), &backup);
    daemon.client().append("a", "after the backup");
    for name in ["live.db", "live.db-wal"] {
        fs::copy(backup.join(name), home.path.join("db/new")).expect("copied");
        fs::rename(home.path.join("db/new"), home.path.join("db").join(name)).expect("renamed");
    }
    ended(daemon, "a backup", "live.db");
    for name in ["live.db", "live.db-wal"] {
        let now = fs::read(home.path.join("db").join(name)).expect("the file");
        assert!(now == fs::read(backup.join(name)).expect("the backup"), "{name} was touched");
    }
}

#[test]
fn files_that_stay_where_they_are_end_nobody() {
    let home = home();
    let mut daemon = running(&home);
    let mut client = daemon.client();
    // Enough for several checkpoints, through which live.db changes by the daemon's own hand.
    let text = "word ".repeat(2_000);
    for _ in 0..600 {
        client.append("a", &text);
    }
    client.save("a", "saved");
    daemon.assert_alive();
    assert!(daemon.terminate().success());
}
