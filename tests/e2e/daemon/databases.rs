//! Databases that are damaged, newer, or gone.

use std::fs;
use std::path::Path;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home};
use rusqlite::Connection;

use crate::home;

/// A stopped home whose agent `a` has one saved message and is live with it.
fn stopped() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "saved");
    daemon.terminate();
    home
}

fn refused(home: &Home) -> String {
    let (status, said) = Daemon::try_start(home, home.command(home.bins.chorusd)).expect_err("refused");
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    assert!(said.contains("error: ") && !said.contains("panicked"), "{said}");
    said
}

fn make_newer(path: &Path) {
    let database = Connection::open(path).expect("the database");
    database.pragma_update(None, "user_version", 9999).expect("a version");
    database.close().expect("closed");
}

#[test]
fn a_database_of_a_newer_schema_is_refused_untouched() {
    for name in ["chorus.db", "live.db"] {
        let home = stopped();
        let path = home.path.join("db").join(name);
        make_newer(&path);
        let before = fs::read(&path).expect("the file");
        let said = refused(&home);
        assert!(said.contains(name), "{said}");
        assert!(fs::read(&path).expect("the file") == before, "{name} was touched");
    }
}

#[test]
fn what_is_not_a_database_is_refused_untouched() {
    for name in ["chorus.db", "live.db"] {
        let home = stopped();
        let path = home.path.join("db").join(name);
        fs::write(&path, "this is no database, but a letter to my aunt".repeat(100)).expect("written");
        let before = fs::read(&path).expect("the file");
        refused(&home);
        assert!(fs::read(&path).expect("the file") == before, "{name} was touched");
    }
}

#[test]
fn a_journal_of_a_crash_is_recovered_with_its_write_ahead_log() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    for n in 0..100 {
        daemon.client().append("a", &n.to_string());
    }
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a").len(), 100);
    // A log that ends in the middle of a frame: what was acknowledged before it stays.
    daemon.kill9();
    let log = home.path.join("db/live.db-wal");
    if let Ok(bytes) = fs::read(&log) {
        fs::write(&log, [&bytes[..], &[0x55; 1000]].concat()).expect("written");
    }
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a").len(), 100);
}

/// P7: older ones have known corruption bugs.
#[test]
fn the_bundled_sqlite_is_recent_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}
