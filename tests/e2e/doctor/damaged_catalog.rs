//! A catalog that cannot be opened: the start says what to do, and that does it.

use std::fs;
use std::path::PathBuf;

use chorus_proto::methods::agent::{List, ListParams, Use, UseParams};
use chorus_proto::methods::doctor::Verdict;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::strace::wait_until_quiet;
use chorus_tests::{Daemon, Home};

use super::doctor;
use crate::home;

/// A stopped home with two agents, one of them chosen, and a saved session.
fn stopped() -> (Home, PathBuf) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.call::<Use>(&UseParams { name: "b".into() }).expect("chosen");
    client.append("a", "one");
    client.save("a", "saved");
    daemon.terminate();
    let path = home.path.join("db/chorus.db");
    (home, path)
}

#[test]
fn a_damaged_catalog_is_refused_set_aside_and_made_anew() {
    let letter = "this is no database, but a letter to my aunt".repeat(100).into_bytes();
    type Damage = fn(Vec<u8>, &[u8]) -> Vec<u8>;
    let damages: [Damage; 4] = [
        |_, letter| letter.to_vec(),
        |whole, _| whole[..whole.len() / 2].to_vec(),
        |whole, _| whole[..50].to_vec(),
        |_, _| Vec::new(),
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let (home, path) = stopped();
        let damaged = damage(fs::read(&path).expect("the database"), &letter);
        fs::write(&path, &damaged).expect("written");
        let refused = chorusctl(&home, ["status"]);
        let said = refused.expect_failure_with_hint(4);
        assert!(said.contains("chorus.db") && said.contains("chorusctl doctor --rebuild"), "{n}: {said}");
        assert_eq!(fs::read(&path).expect("the file"), damaged, "{n}: it was touched");
        let (status, found) = doctor(&home, &["--rebuild"]);
        let rebuilt = found.rebuilt.expect("it was rebuilt");
        assert_eq!((status, rebuilt.agents, rebuilt.sessions), (0, 2, 1), "{n}: {:?}", found.checks);
        let aside = rebuilt.set_aside.expect("the damaged file has a name");
        assert!(aside.contains("/db/chorus.db.damaged-"), "{aside}");
        assert_eq!(fs::read(aside).expect("it is kept"), damaged, "{n}");
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        assert_eq!((client.message_texts("a"), client.history("a").len()), (vec!["one".to_owned()], 1));
        let chosen = client.call::<List>(&ListParams::default()).expect("a list").chosen;
        assert_eq!(chosen.as_deref(), Some("b"), "{n}: settings come from the copy of the last stop");
    }
}

#[test]
fn without_a_copy_the_directories_are_enough() {
    let (home, path) = stopped();
    fs::write(&path, "nonsense").expect("written");
    fs::write(path.with_extension("db.bak"), "nonsense too").expect("written");
    let said = chorusctl(&home, ["doctor", "--rebuild"]).expect_success();
    assert!(
        said.contains("rebuilt: 2 agents, 1 session, in ") && said.contains("kept the damaged database as"),
        "{said}"
    );
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1);
}

#[test]
fn damage_under_a_running_daemon_is_told_and_not_written_into() {
    // Of the rest, the daemon has pages in memory or not, so that some of its reads fail.
    for spared_pages in [2, 4, 8, 16, 24] {
        let (home, path) = stopped();
        let daemon = Daemon::start(&home);
        assert_eq!(daemon.client().history("a").len(), 1);
        // What it reads by itself at its start must not be what is damaged: it would end.
        wait_until_quiet(daemon.pid);
        let mut damaged = fs::read(&path).expect("the database");
        damaged.iter_mut().skip(spared_pages * 4096).for_each(|byte| *byte = 0x55);
        fs::write(&path, &damaged).expect("written");
        let (status, found) = doctor(&home, &["--rebuild"]);
        assert_eq!((status, found.rebuilt), (1, None), "{spared_pages}: {:?}", found.checks);
        let check = found.checks.iter().find(|check| check.name == "chorus.db").expect("a check");
        let hint = check.hint.as_deref().unwrap_or_default();
        assert!(check.verdict == Verdict::Fail && hint.contains("daemon stop"), "{spared_pages}: {check:?}");
    }
}

#[test]
fn a_newer_database_is_not_set_aside_and_a_running_daemon_not_disturbed() {
    let (home, path) = stopped();
    let database = rusqlite::Connection::open(&path).expect("the database");
    database.pragma_update(None, "user_version", 9999).expect("a version");
    database.close().expect("closed");
    let before = fs::read(&path).expect("the file");
    chorusctl(&home, ["doctor", "--rebuild"]).expect_failure_with_hint(1);
    assert_eq!(fs::read(&path).expect("the file"), before);
    let other = crate::home();
    let _daemon = Daemon::start(&other);
    let mut command = other.command(other.bins.chorusd);
    let refused = command.arg("--rebuild").output().expect("it ends");
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
}
