//! A home whose databases were moved or removed is not taken for a new one.

use std::fs;

use chorus_proto::methods::doctor::Verdict;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::{doctor, journal, newest, notices, set_aside, trouble};
use crate::home;

/// A stopped home with an agent, a saved session and a live conversation, and the number of its newest event.
fn stopped() -> (Home, u64) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "saved");
    let last = newest(&daemon);
    assert!(daemon.terminate().success());
    (home, last)
}

fn refused(home: &Home) {
    let said = chorusctl(home, ["status"]);
    let said = said.expect_failure_with_hint(6);
    assert!(said.contains("live.db is missing") && said.contains("doctor --salvage"), "{said}");
    assert!(!journal(home).exists() && set_aside(home).is_empty(), "nothing was begun");
}

#[test]
fn a_home_without_its_databases_is_refused_until_somebody_says_so() {
    let (home, _) = stopped();
    let (db, away) = (home.path.join("db"), home.temp_dir().join("db"));
    fs::rename(&db, &away).expect("moved");
    refused(&home);
    // Again: what the first refusal left is no journal.
    refused(&home);
    fs::remove_dir_all(&db).expect("removed");
    fs::rename(&away, &db).expect("back in its place");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["one"]);
    daemon.terminate();
    fs::remove_dir_all(&db).expect("removed");
    refused(&home);
    let found = doctor(&home, &["--salvage"]);
    assert!(trouble(&found).iter().all(|check| check.verdict == Verdict::Info), "{:?}", found.checks);
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), Vec::<String>::new());
    let mut client = daemon.client();
    wait_until("the session to be listed", DEADLINE, || (client.history("a").len() == 1).then_some(()));
}

#[test]
fn a_journal_alone_that_is_missing_is_told_and_no_number_of_an_event_is_given_twice() {
    let (home, last) = stopped();
    fs::remove_file(journal(&home)).expect("removed");
    refused(&home);
    doctor(&home, &["--salvage"]);
    let daemon = Daemon::start(&home);
    assert!(newest(&daemon) > last, "{} after {last}", newest(&daemon));
    let told = notices(&daemon);
    assert!(told.len() == 1 && told[0].contains("is missing"), "{told:?}");
    assert!(trouble(&doctor(&home, &[])).iter().all(|check| check.verdict == Verdict::Info));
    daemon.client().append("a", "and on");
    daemon.kill9();
    assert_eq!(Daemon::start(&home).client().message_texts("a"), ["and on"]);
    fs::remove_file(journal(&home)).expect("removed");
    for suffix in ["db-wal", "db-shm"] {
        _ = fs::remove_file(journal(&home).with_extension(suffix));
    }
    let said = chorusctl(&home, ["status"]);
    assert!(said.expect_failure_with_hint(6).contains("live.db is missing"), "one salvage is no leave for ever");
}
