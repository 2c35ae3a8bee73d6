//! A backup is not replaced by one of another home or of a damaged one, and the one before stays.

use std::fs;
use std::os::unix::fs::FileExt as _;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use super::{back_up, path, restored, verified};
use crate::home;

#[test]
fn another_home_is_refused_and_a_restored_one_goes_on() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    daemon.client().append("atlas", "hello");
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let first = verified(&one, &dir).created_at;
    let two = home();
    let _empty = Daemon::start(&two);
    let said = chorusctl(&two, ["--quiet", "backup", path(&dir)]).expect_failure_with_hint(6).to_owned();
    assert!(said.contains("a backup of another home"), "{said}");
    assert_eq!(verified(&one, &dir).created_at, first);
    let three = restored(&dir);
    let there = Daemon::start(&three);
    assert_eq!(there.client().message_texts("atlas"), ["hello"]);
    back_up(&three, &dir);
    assert!(verified(&one, &dir).created_at > first);
}

#[test]
fn the_backup_before_is_kept_with_its_databases() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    let dir = one.temp_dir().join("backup");
    let mut made = Vec::new();
    for text in ["one", "two", "three"] {
        daemon.client().append("atlas", text);
        chorusctl(&one, ["--quiet", "backup", path(&dir), "--prune"]).expect_success();
        made.push(verified(&one, &dir).created_at);
    }
    let previous = dir.join("manifest.previous.jsonl");
    assert_eq!(verified(&one, &previous).created_at, made[1]);
    assert_eq!(Daemon::start(&restored(&previous)).client().message_texts("atlas"), ["one", "two"]);
    assert_eq!(Daemon::start(&restored(&dir)).client().message_texts("atlas"), ["one", "two", "three"]);
}

#[test]
fn a_damaged_database_fails_and_the_backup_before_is_as_it_was() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    for n in 0..40 {
        daemon.client().append("atlas", &format!("{n} {}", "words ".repeat(2000)));
    }
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let first = verified(&one, &dir).created_at;
    daemon.terminate();
    let path_of_journal = one.path.join("db/live.db");
    let journal = fs::File::options().write(true).open(&path_of_journal).expect("the journal");
    let length = journal.metadata().expect("its length").len();
    let page = 4096;
    for number in (length / page / 2)..(length / page - 1) {
        journal.write_all_at(&[0xA5; 4096], number * page).expect("damaged");
    }
    drop(journal);
    // A start either sets it aside, which is warned of, or goes on with it, which fails.
    let told = chorusctl(&one, ["--quiet", "backup", path(&dir)]);
    if told.status == 0 {
        assert!(told.stderr.contains("warning: ") && told.stderr.contains("damaged"), "{}", told.stderr);
        let previous = dir.join("manifest.previous.jsonl");
        for _ in 0..2 {
            chorusctl(&one, ["--quiet", "backup", path(&dir), "--prune"]).expect_success();
        }
        assert_eq!(verified(&one, &previous).created_at, first, "the last one before the loss");
    } else {
        assert!(told.stderr.contains("hint: "), "{}", told.stderr);
        assert_eq!(verified(&one, &dir).created_at, first);
    }
}
