//! `doctor --salvage`: everything that a broken journal still has becomes sessions.

use std::fs;
use std::os::unix::fs::FileExt as _;

use chorus_proto::ErrorKind;
use chorus_proto::methods::doctor::{DoctorResult, Salvaged, Verdict};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use rusqlite::{Connection, params};

use super::{doctor, journal, newest, notices, set_aside, trouble, try_texts};
use crate::home;

const MESSAGES: usize = 20;

fn texts(from: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{from} {n}")).collect()
}

/// A stopped home with messages of two agents that no session holds, but for the first of `a`.
fn stopped() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        texts(agent, MESSAGES).iter().for_each(|text| _ = client.append(agent, text));
    }
    daemon.kill9();
    home
}

fn open(home: &Home) -> Connection {
    Connection::open(journal(home)).expect("the journal")
}

/// A message as releases before the checksums wrote it.
fn bare(json: &str) -> Vec<u8> {
    let length = u16::try_from(json.len()).expect("a short message");
    let mut envelope = vec![1, 0];
    match length {
        0..251 => envelope.push(length as u8),
        _ => envelope.extend([251].into_iter().chain(length.to_le_bytes())),
    }
    envelope.extend(json.as_bytes());
    envelope
}

/// Adds what a second daemon, which knew the context's first `known` records only, would have appended.
fn second_daemon(home: &Home, known: u32, count: usize) {
    let database = open(home);
    let (context, mut newest): (i64, i64) = database
        .query_row("SELECT id, last_record FROM contexts ORDER BY id LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("a context");
    for (number, text) in (known..).zip(texts("second", count)) {
        let json =
            format!(r#"{{"id":"m{number}","role":"user","content":"{text}","timestamp":"2026-01-02T03:04:05Z"}}"#);
        database
            .execute(
                "INSERT INTO records (before, number, envelope) VALUES (?1, ?2, ?3)",
                params![newest, number, bare(&json)],
            )
            .expect("a record");
        newest = database.last_insert_rowid();
    }
    database
        .execute(
            "UPDATE contexts SET last_record = ?2, messages = messages + ?3 WHERE id = ?1",
            params![context, newest, count],
        )
        .expect("a head");
}

/// The error of a context that cannot be read names the way out, and `doctor` sees it.
fn told(home: &Home, daemon: &Daemon) {
    let (kind, hint) = try_texts(&mut daemon.client(), "a").expect_err("it cannot be read");
    assert_eq!(kind, ErrorKind::StorageFailed);
    assert!(hint.as_deref().is_some_and(|hint| hint.contains("doctor --salvage")), "{hint:?}");
    let found = doctor(home, &[]);
    let failed: Vec<_> = trouble(&found).into_iter().filter(|check| check.verdict == Verdict::Fail).collect();
    assert!(failed.iter().any(|check| check.hint.as_deref().is_some_and(|h| h.contains("--salvage"))), "{failed:?}");
}

fn salvaged(found: &DoctorResult) -> &Salvaged {
    found.salvaged.as_ref().unwrap_or_else(|| panic!("nothing was salvaged: {:?}", found.checks))
}

/// The number of the newest event, as it stands beside the journal.
fn noted(home: &Home) -> u64 {
    let noted = fs::read_to_string(home.path.join("db/live.newest")).expect("the note");
    noted.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The agent works again, with `expected` in its context and in a session.
fn healed(home: &Home, daemon: &Daemon, expected: &[String]) {
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), expected);
    let (session, messages) = client.get_session("a", "latest");
    assert_eq!(session.header.tags, ["salvaged"]);
    assert_eq!(messages.into_iter().map(|message| message.content).collect::<Vec<_>>(), expected);
    client.append("a", "and on");
    assert_eq!(
        (client.message_texts("a").len(), client.message_texts("b")),
        (expected.len() + 1, texts("b", MESSAGES))
    );
    let found = doctor(home, &[]);
    assert!(trouble(&found).iter().all(|check| check.verdict != Verdict::Fail), "{:?}", found.checks);
}

#[test]
fn what_two_daemons_appended_is_one_conversation_in_the_order_of_arrival() {
    let home = stopped();
    second_daemon(&home, 5, 13);
    let daemon = Daemon::start(&home);
    told(&home, &daemon);
    let found = doctor(&home, &["--salvage"]);
    let done = salvaged(&found);
    assert_eq!((done.sessions, done.messages, done.unreadable), (1, MESSAGES as u64 + 13, 0));
    assert_eq!(done.restored, ["a"]);
    let kept = Connection::open(set_aside(&home)[0].join("live.db")).expect("the copy");
    let records: usize = kept.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).expect("a count");
    assert_eq!(records, 2 * MESSAGES + 13, "the copy has it as it was");
    healed(&home, &daemon, &[texts("a", MESSAGES), texts("second", 13)].concat());
    let found = doctor(&home, &[]);
    assert!(trouble(&found).iter().all(|check| check.verdict == Verdict::Info), "{:?}", found.checks);
    // A second time there is nothing to do.
    assert_eq!(salvaged(&doctor(&home, &["--salvage"])).sessions, 0);
    daemon.kill9();
    assert_eq!(Daemon::start(&home).client().message_texts("a").len(), MESSAGES + 14);
}

#[test]
fn records_outside_of_every_chain_are_found() {
    let home = stopped();
    open(&home)
        .execute("UPDATE contexts SET last_record = (SELECT id FROM records WHERE number = 7 LIMIT 1) WHERE id = 1", [])
        .expect("cut");
    let daemon = Daemon::start(&home);
    told(&home, &daemon);
    assert_eq!(salvaged(&doctor(&home, &["--salvage"])).messages, MESSAGES as u64);
    healed(&home, &daemon, &texts("a", MESSAGES));
}

#[test]
fn a_record_that_was_changed_is_left_out_and_counted() {
    let home = stopped();
    let changed = open(&home)
        .execute("UPDATE records SET envelope = CAST(replace(CAST(envelope AS TEXT), 'a 7', 'a 8') AS BLOB) WHERE number = 7 AND id < 20", [])
        .expect("changed");
    assert_eq!(changed, 1);
    let daemon = Daemon::start(&home);
    told(&home, &daemon);
    let found = doctor(&home, &["--salvage"]);
    assert_eq!((salvaged(&found).messages, salvaged(&found).unreadable), (MESSAGES as u64 - 1, 1));
    assert_eq!(salvaged(&found).expected, Some(MESSAGES as u64));
    let rest: Vec<String> = texts("a", MESSAGES).into_iter().filter(|text| text != "a 7").collect();
    healed(&home, &daemon, &rest);
    let found = doctor(&home, &[]);
    let hint = trouble(&found)[0].hint.as_deref().unwrap_or_default();
    assert!(trouble(&found)[0].verdict == Verdict::Warn && hint.contains("keep "), "{:?}", found.checks);
}

#[test]
fn a_page_that_was_overwritten_costs_what_was_in_it() {
    let home = stopped();
    // All in live.db, and enough of it that a page is a part.
    let daemon = Daemon::start(&home);
    let long: Vec<String> = (0..200).map(|n| format!("long {n} {}", "word ".repeat(40))).collect();
    long.iter().for_each(|text| _ = daemon.client().append("b", text));
    assert!(daemon.terminate().success());
    let file = fs::File::options().write(true).read(true).open(journal(&home)).expect("live.db");
    let bytes = fs::read(journal(&home)).expect("live.db");
    let at = bytes.windows(9).position(|window| window == b"long 100 ").expect("the page") / 4096 * 4096;
    file.write_all_at(&[0x55; 4096], at as u64).expect("overwritten");
    let daemon = Daemon::start(&home);
    let (_, hint) = try_texts(&mut daemon.client(), "b").expect_err("it cannot be read");
    assert!(hint.is_some_and(|hint| hint.contains("doctor")));
    let found = doctor(&home, &["--salvage"]);
    assert!(found.salvaged.is_none() && trouble(&found)[0].hint.as_deref().is_some_and(|h| h.contains("daemon stop")));
    drop(daemon);
    let said = chorusctl(&home, ["doctor", "--salvage"]).stdout;
    assert!(
        said.contains("salvaged: ")
            && said.contains("loaded as live conversations: ")
            && said.contains("kept the damaged files in "),
        "{said}"
    );
    let daemon = Daemon::start(&home);
    let found = daemon.client().message_texts("b");
    let expected: Vec<&String> = long.iter().collect();
    let there = expected.iter().filter(|text| found.contains(text)).count();
    assert!((150..200).contains(&there), "{there} of {}", expected.len());
    assert_eq!(daemon.client().message_texts("a"), texts("a", MESSAGES));
}

#[test]
fn a_journal_that_cannot_be_opened_is_set_aside_by_the_command_that_the_start_names() {
    let home = stopped();
    Daemon::start(&home).terminate();
    let letter = "this is no database, but a letter to my aunt".repeat(100);
    fs::write(journal(&home), &letter).expect("written");
    let (status, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
    assert!(!status.success() && said.contains("doctor --salvage"), "{said}");
    let before = noted(&home);
    chorusctl(&home, ["doctor", "--salvage"]);
    assert_eq!(fs::read_to_string(set_aside(&home)[0].join("live.db")).expect("kept"), letter);
    let daemon = Daemon::start(&home);
    assert!(notices(&daemon).len() == 1 && set_aside(&home).len() == 1, "{:?}", notices(&daemon));
    assert!(newest(&daemon) > before, "{} after {before}: no number is given twice", newest(&daemon));
    assert_eq!(daemon.client().append("a", "on"), 1);
}
