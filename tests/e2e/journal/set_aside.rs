//! Journals that were set aside: their files are the only copy of what they have, and stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use chorus_proto::methods::doctor::Verdict;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use super::{doctor, journal, set_aside, trouble};
use crate::home;

const TEXTS: [&str; 4] = ["base", "late1", "late2", "late3"];

/// A home after `kill -9` whose journal was in use twice: its log has no page of the schema.
fn restarted() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", TEXTS[0]);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    TEXTS[1..].iter().for_each(|text| _ = daemon.client().append("a", text));
    daemon.kill9();
    home
}

/// The files of a directory, but for what is known of them.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let read = |path: &Path| (path.to_string_lossy().into_owned(), fs::read(path).expect("a file"));
    entries.filter(|path| !path.ends_with("found.json")).map(|path| read(&path)).collect()
}

/// Overwrites the header of live.db.
fn without_header(home: &Home) {
    let file = fs::File::options().write(true).open(journal(home)).expect("live.db");
    file.write_all_at(&[0xa5; 100], 0).expect("written");
}

/// Nothing is left of the copies that were read.
fn no_copies(home: &Home) {
    let names = fs::read_dir(home.path.join("db")).expect("db/").map(|entry| entry.expect("an entry").file_name());
    let copies: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".salvage")).collect();
    assert!(copies.is_empty(), "{copies:?}");
}

#[test]
fn an_empty_or_missing_database_costs_nothing_that_its_log_has() {
    for missing in [false, true] {
        let home = restarted();
        let log = fs::read(journal(&home).with_extension("db-wal")).expect("the log");
        if missing {
            fs::remove_file(journal(&home)).expect("removed");
        } else {
            fs::write(journal(&home), "").expect("emptied");
        }
        let daemon = Daemon::start(&home);
        let aside = set_aside(&home);
        let before = content(&aside[0]);
        assert!(before.values().any(|file| *file == log), "the log is kept");
        let said = chorusctl(&home, ["doctor", "--salvage"]);
        assert!(said.stdout.contains("salvaged: 1 session, 4 messages"), "{}{}", said.stdout, said.stderr);
        assert_eq!(daemon.client().message_texts("a"), TEXTS);
        assert_eq!((content(&aside[0]), set_aside(&home)), (before, aside));
        no_copies(&home);
    }
}

#[test]
fn an_empty_database_is_salvaged_without_a_start_as_well() {
    let home = restarted();
    fs::write(journal(&home), "").expect("emptied");
    let said = chorusctl(&home, ["doctor", "--salvage"]);
    assert!(said.stdout.contains("salvaged: 1 session, 4 messages"), "{}{}", said.stdout, said.stderr);
    assert_eq!(Daemon::start(&home).client().message_texts("a"), TEXTS);
}

#[test]
fn a_new_journal_that_has_gone_on_hides_nothing_of_the_old_one() {
    let home = restarted();
    fs::remove_file(journal(&home)).expect("removed");
    let daemon = Daemon::start(&home);
    // The new context has the number of the old one, and more messages.
    (0..6).for_each(|n| _ = daemon.client().append("a", &format!("new {n}")));
    let live = daemon.client().message_texts("a");
    assert_eq!(doctor(&home, &["--salvage"]).salvaged.expect("salvaged").messages, 4);
    assert_eq!(daemon.client().message_texts("a"), live);
    let (_, messages) = daemon.client().get_session("a", "latest");
    assert_eq!(messages.into_iter().map(|message| message.content).collect::<Vec<_>>(), TEXTS);
}

#[test]
fn a_damaged_header_keeps_sqlite_from_the_log() {
    let home = restarted();
    without_header(&home);
    let before = content(&home.path.join("db"));
    let (status, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
    assert!(!status.success() && said.contains("live.db") && said.contains("doctor --salvage"), "{said}");
    let after = content(&home.path.join("db"));
    for (name, bytes) in before.iter().filter(|(name, _)| name.contains("live.db") && !name.ends_with("-shm")) {
        assert!(after.get(name) == Some(bytes), "{name} was changed");
    }
    let said = chorusctl(&home, ["doctor", "--salvage"]);
    assert!(said.stdout.contains("salvaged: 1 session, 4 messages"), "{}{}", said.stdout, said.stderr);
    assert_eq!(Daemon::start(&home).client().message_texts("a"), TEXTS);
}

#[test]
fn a_journal_that_cannot_be_read_is_told_and_kept_and_the_next_is_salvaged() {
    let home = restarted();
    let kept = fs::read(journal(&home)).expect("live.db");
    let log = fs::read(journal(&home).with_extension("db-wal")).expect("the log");
    let letter = "this is no database, but a letter to my aunt".repeat(100);
    fs::write(journal(&home), &letter).expect("written");
    fs::remove_file(journal(&home).with_extension("db-wal")).expect("removed");
    let said = chorusctl(&home, ["doctor", "--salvage"]);
    assert_eq!(said.status, 1, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("nothing readable in "), "{}{}", said.stdout, said.stderr);
    let first = set_aside(&home).pop().expect("a directory");
    // The journal that was meant comes back, with another damage.
    for suffix in ["db-wal", "db-shm"] {
        _ = fs::remove_file(journal(&home).with_extension(suffix));
    }
    fs::write(journal(&home), kept).expect("written");
    fs::write(journal(&home).with_extension("db-wal"), log).expect("written");
    without_header(&home);
    let said = chorusctl(&home, ["doctor", "--salvage"]);
    assert!(said.stdout.contains("salvaged: 1 session, 4 messages"), "{}{}", said.stdout, said.stderr);
    assert_eq!(fs::read_to_string(first.join("live.db")).expect("kept"), letter);
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), TEXTS);
    let found = doctor(&home, &[]);
    let name = first.file_name().expect("a name").to_string_lossy().into_owned();
    let of_first = trouble(&found).into_iter().find(|check| check.text.contains(&name)).expect("it is told");
    let hint = of_first.hint.as_deref().unwrap_or_default();
    assert!(of_first.verdict == Verdict::Warn && hint.contains("keep ") && !hint.contains("delete"), "{of_first:?}");
}
