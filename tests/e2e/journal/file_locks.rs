//! P24: while a daemon runs no other process gets into its journal.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rusqlite::{Connection, ErrorCode};

use super::{doctor, journal};
use crate::home;

fn locked_out(home: &Home) {
    let other = Connection::open(journal(home)).expect("opened, not read");
    other.busy_timeout(std::time::Duration::ZERO).expect("a time-out");
    for statement in ["SELECT count(*) FROM records", "DELETE FROM records", "BEGIN IMMEDIATE"] {
        let refused = other.execute_batch(statement).expect_err(statement);
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{statement}: {refused}");
    }
}

#[test]
fn no_other_process_reads_or_writes_the_journal_while_a_daemon_runs() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    locked_out(&home);
    // A look at the database must not let others in: closing a file drops the locks of its process.
    doctor(&home, &[]);
    locked_out(&home);
    doctor(&home, &["--rebuild"]);
    locked_out(&home);
    client.save("a", "saved");
    assert_eq!(client.message_texts("a"), ["one"]);
    locked_out(&home);
    daemon.kill9();
    assert!(Connection::open(journal(&home)).expect("opened").execute_batch("SELECT count(*) FROM records").is_ok());
}

/// A stopped home, and somebody who reads its journal.
fn read_by_another() -> (Home, Connection) {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    daemon.terminate();
    let other = Connection::open(journal(&home)).expect("opened");
    other.execute_batch("SELECT count(*) FROM records").expect("read");
    (home, other)
}

#[test]
fn a_journal_that_somebody_else_keeps_open_is_not_started_with() {
    let (home, other) = read_by_another();
    let (status, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
    assert_eq!(status.code(), Some(7), "{said}");
    let who = format!("(pid {})", std::process::id());
    assert!(said.contains("live.db open") && said.contains("hint: stop ") && said.contains(&who), "{said}");
    drop(other);
    assert_eq!(Daemon::start(&home).client().message_texts("a"), ["one"]);
}

#[test]
fn a_start_waits_for_somebody_who_looks_at_the_journal() {
    let (home, other) = read_by_another();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| Daemon::start(&home));
        let log = home.temp_dir().join("chorusd.err");
        let waits = || std::fs::read_to_string(&log).ok().filter(|said| said.contains("waiting for it to end"));
        wait_until("the daemon to wait", DEADLINE, waits);
        drop(other);
        assert_eq!(started.join().expect("a daemon").client().message_texts("a"), ["one"]);
    });
}
