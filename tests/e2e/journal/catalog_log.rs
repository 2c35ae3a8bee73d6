//! The catalog's log is looked at as the journal's is: memory and settings stand in no file.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use rusqlite::Connection;

use super::{doctor, notices, set_aside};
use crate::home;

const MEMORIES: usize = 12;

fn catalog(home: &Home) -> PathBuf {
    home.path.join("db/chorus.db")
}

fn log(home: &Home) -> PathBuf {
    home.path.join("db/chorus.db-wal")
}

fn remember(home: &Home, from: usize, to: usize) {
    for n in from..to {
        chorusctl(home, ["memory", "add", &format!("fact {n}")]).expect_success();
    }
}

fn remembered(home: &Home) -> usize {
    chorusctl(home, ["memory", "list"]).expect_success().matches("fact ").count()
}

/// A home after `kill -9`, with everything in the catalog's log; `stops`: and some in the database, as a stop leaves it.
fn killed(stops: bool) -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    remember(&home, 0, MEMORIES / 2);
    let daemon = if stops {
        assert!(daemon.terminate().success());
        Daemon::start(&home)
    } else {
        daemon
    };
    remember(&home, MEMORIES / 2, MEMORIES);
    daemon.kill9();
    home
}

/// Bytes of a frame of the log: its header and a page.
const FRAME_BYTES: usize = 24 + 4096;

/// A frame near the middle of a log whose page, and that of the next frame, which continues its checksum, later frames have.
fn replaced_frame(log: &[u8]) -> usize {
    let pages: Vec<&[u8]> = log[32..].chunks_exact(FRAME_BYTES).map(|frame| &frame[..4]).collect();
    let is_replaced = |at: usize| pages[at + 2..].contains(&pages[at]) && pages[at + 2..].contains(&pages[at + 1]);
    let middle = pages.len() / 2;
    (middle..pages.len() - 2).find(|at| is_replaced(*at)).expect("a page that is written again")
}

/// The checks about damage of the catalog.
fn damage(home: &Home) -> Vec<Check> {
    let checks = doctor(home, &[]).checks.into_iter();
    checks.filter(|check| check.name == "chorus.db" && check.text.contains("damaged-")).collect()
}

#[test]
fn a_flipped_bit_in_its_log_costs_nothing_that_later_frames_have() {
    let home = killed(false);
    let mut bytes = fs::read(log(&home)).expect("the log");
    // In the checksum of a frame: every page is as it was written.
    let frame = replaced_frame(&bytes);
    bytes[32 + frame * FRAME_BYTES + 16] ^= 4;
    fs::write(log(&home), &bytes).expect("written");
    let daemon = Daemon::start(&home);
    assert_eq!(remembered(&home), MEMORIES, "{}", daemon.read_log());
    let told = notices(&daemon);
    assert!(told.len() == 1 && told[0].contains("catalog") && told[0].contains("frame"), "{told:?}");
    assert_eq!(fs::read(set_aside(&home)[0].join("chorus.db-wal")).expect("the damaged log"), bytes);
    assert_eq!(damage(&home).len(), 1);
    remember(&home, MEMORIES, MEMORIES + 1);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!((notices(&daemon).len(), set_aside(&home).len(), remembered(&home)), (1, 1, MEMORIES + 1));
}

#[test]
fn a_log_whose_database_is_gone_is_kept_and_the_database_made_of_it() {
    let home = killed(false);
    let bytes = fs::read(log(&home)).expect("the log");
    fs::remove_file(catalog(&home)).expect("removed");
    let daemon = Daemon::start(&home);
    assert_eq!((remembered(&home), notices(&daemon).len()), (MEMORIES, 1));
    assert_eq!(fs::read(set_aside(&home)[0].join("chorus.db-wal")).expect("the log"), bytes);
    assert!(damage(&home).iter().all(|check| check.verdict == Verdict::Info));
}

#[test]
fn without_the_pages_that_its_log_lacks_the_copy_of_the_last_stop_is_used_and_the_loss_told() {
    for emptied in [false, true] {
        let home = killed(true);
        let bytes = fs::read(log(&home)).expect("the log");
        if emptied {
            fs::write(catalog(&home), "").expect("emptied");
        } else {
            fs::remove_file(catalog(&home)).expect("removed");
        }
        let daemon = Daemon::start(&home);
        assert!(remembered(&home) >= MEMORIES / 2, "{}", daemon.read_log());
        assert_eq!(fs::read(set_aside(&home)[0].join("chorus.db-wal")).expect("the log"), bytes);
        assert!(notices(&daemon)[0].contains("memory"), "{:?}", notices(&daemon));
        assert!(damage(&home).iter().any(|check| check.verdict == Verdict::Fail), "{:?}", damage(&home));
        doctor(&home, &["--salvage"]);
        assert!(damage(&home).iter().all(|check| check.verdict == Verdict::Warn), "{:?}", damage(&home));
    }
}

#[test]
fn a_rebuild_carries_over_what_the_damaged_one_still_has() {
    let home = killed(true);
    // All of it goes into the database; the copy beside it is of before.
    let copy = fs::read(catalog(&home).with_extension("db.bak")).expect("the copy");
    assert!(Daemon::start(&home).terminate().success());
    fs::write(catalog(&home).with_extension("db.bak"), copy).expect("written");
    let page: u64 = Connection::open(catalog(&home))
        .and_then(|conn| {
            conn.query_row("SELECT rootpage FROM sqlite_master WHERE name = 'usage_by_time'", [], |row| row.get(0))
        })
        .expect("the page of an index");
    let file = fs::File::options().write(true).open(catalog(&home)).expect("the catalog");
    file.write_all_at(&[0x55; 4096], (page - 1) * 4096).expect("overwritten");
    chorusctl(&home, ["doctor", "--rebuild"]);
    let _daemon = Daemon::start(&home);
    assert_eq!(remembered(&home), MEMORIES);
}
