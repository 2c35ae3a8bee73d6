//! P25: what SQLite drops without a word at a start is told, and recovered as far as it can be read.

use std::fs;

use chorus_proto::methods::context::{Pin, PinParams};
use chorus_proto::methods::doctor::Verdict;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home};

use super::{doctor, journal, newest, notices, set_aside, trouble};
use crate::home;

const MESSAGES: usize = 40;

/// A home after `kill -9`, with everything still in the log.
fn killed() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    (0..MESSAGES).for_each(|n| _ = client.append("a", &format!("message {n}")));
    daemon.kill9();
    home
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("message {n}")).collect()
}

#[test]
fn a_flipped_bit_in_the_log_costs_nothing_that_later_frames_have() {
    let home = killed();
    let log = journal(&home).with_extension("db-wal");
    let mut bytes = fs::read(&log).expect("the log");
    let damaged = bytes.len() / 2;
    bytes[damaged] ^= 4;
    fs::write(&log, &bytes).expect("written");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), texts(MESSAGES));
    let told = notices(&daemon);
    assert!(told.len() == 1 && told[0].contains("doctor"), "{told:?}");
    assert!(daemon.read_log().contains("frame"), "{}", daemon.read_log());
    let aside = set_aside(&home);
    assert_eq!(fs::read(aside[0].join("live.db-wal")).expect("the damaged log"), bytes);
    let found = doctor(&home, &[]);
    assert!(trouble(&found).iter().any(|check| check.text.contains("damaged-")), "{:?}", found.checks);
    // Told once: the next start finds nothing.
    daemon.client().append("a", "one more");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!((daemon.client().message_texts("a").len(), notices(&daemon).len()), (MESSAGES + 1, 1));
    assert_eq!(set_aside(&home), aside);
}

#[test]
fn a_log_whose_database_is_gone_is_kept_and_the_database_made_of_it() {
    let home = killed();
    let log = fs::read(journal(&home).with_extension("db-wal")).expect("the log");
    fs::remove_file(journal(&home)).expect("removed");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), texts(MESSAGES));
    assert_eq!(fs::read(set_aside(&home)[0].join("live.db-wal")).expect("the log"), log);
    assert_eq!(notices(&daemon).len(), 1);
}

#[test]
fn a_log_that_is_gone_is_told_with_numbers_and_no_event_has_the_number_of_another() {
    let home = killed();
    let daemon = Daemon::start(&home);
    daemon.client().append("a", "the last");
    let before = newest(&daemon);
    daemon.kill9();
    fs::remove_file(journal(&home).with_extension("db-wal")).expect("removed");
    let daemon = Daemon::start(&home);
    let told = notices(&daemon).pop().expect("a notice");
    assert!(told.contains(&format!("to {before} are missing")), "{told}");
    let last = newest(&daemon);
    assert!(last > before, "{last} after {before}");
    let found = doctor(&home, &[]);
    assert!(trouble(&found).iter().any(|check| check.verdict == Verdict::Fail), "{:?}", found.checks);
    let found = doctor(&home, &["--salvage"]);
    assert!(trouble(&found).iter().all(|check| check.verdict == Verdict::Info), "{:?}", found.checks);
}

#[test]
fn a_pin_in_a_last_frame_that_is_damaged_is_missed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let pin = PinParams { conversation: None, agent: Some("a".into()), fact: "the old column stays".into() };
    client.call::<Pin>(&pin).expect("pinned");
    daemon.kill9();
    let log = journal(&home).with_extension("db-wal");
    let mut bytes = fs::read(&log).expect("the log");
    // Salt of the last frame: no state of the page that it holds can be told from leftovers any more.
    let last = bytes.len() - 4096 - 24;
    bytes[last + 9] ^= 1;
    fs::write(&log, &bytes).expect("written");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().pinned_facts("a"), Vec::<String>::new());
    let told = notices(&daemon);
    assert!(told.len() == 1 && told[0].contains("changes without an event"), "{told:?}");
    assert!(trouble(&doctor(&home, &[])).iter().any(|check| check.verdict == Verdict::Fail));
    daemon.kill9();
    assert_eq!(notices(&Daemon::start(&home)).len(), 1, "told once");
}

#[test]
fn a_bit_in_the_last_transaction_is_told_and_its_log_kept() {
    let home = killed();
    let log = journal(&home).with_extension("db-wal");
    let mut bytes = fs::read(&log).expect("the log");
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(&log, &bytes).expect("written");
    let daemon = Daemon::start(&home);
    assert_eq!(notices(&daemon).len(), 1, "{}", daemon.read_log());
    assert_eq!(fs::read(set_aside(&home)[0].join("live.db-wal")).expect("the damaged log"), bytes);
    daemon.client().init("b");
    daemon.client().append("b", "and on");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!((notices(&daemon).len(), set_aside(&home).len()), (1, 1), "nothing of the damaged log is found again");
}

#[test]
fn what_stands_beside_the_journal_is_not_old_after_a_clean_stop() {
    let home = home();
    let daemon = Daemon::start_with(&home, "durability = \"interval\"\nautosave_interval = \"1h\"\n");
    daemon.client().init("a");
    (0..5).for_each(|n| _ = daemon.client().append("a", &format!("message {n}")));
    let last = newest(&daemon);
    assert!(daemon.terminate().success());
    let noted = fs::read_to_string(home.path.join("db/live.newest")).expect("the note");
    let noted: u64 = noted.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!(noted >= last, "{noted} of {last}");
}

#[test]
fn what_a_crash_leaves_is_no_damage() {
    let home = killed();
    let (database, log) = (journal(&home), journal(&home).with_extension("db-wal"));
    let (kept, whole) = (fs::read(&database).expect("live.db"), fs::read(&log).expect("the log"));
    // The log ends at any byte, as a loss of power may have it; the number beside it is from before.
    fs::remove_file(home.path.join("db/live.newest")).expect("removed");
    for length in (0..whole.len()).step_by(whole.len() / 7).chain([whole.len() - 1, whole.len() - 4096]) {
        fs::write(&database, &kept).expect("written");
        fs::write(&log, &whole[..length]).expect("written");
        _ = fs::remove_file(home.path.join("db/live.newest"));
        let daemon = Daemon::start(&home);
        assert_eq!((notices(&daemon), set_aside(&home)), (Vec::new(), Vec::new()), "{length} bytes");
        daemon.kill9();
    }
}
