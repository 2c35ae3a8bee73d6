//! P25: bits flipped in live.db and its log after `kill -9`, and one of the two missing: nothing is lost or changed without a word.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chorus_proto::methods::doctor::Verdict;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::rng::Rng;
use chorus_tests::{Daemon, Home};

use super::{copy_all, doctor, journal, set_aside, trouble, try_texts};
use crate::home;

const AGENTS: [&str; 3] = ["a", "b", "c"];

/// How many damages: 300 with `CHORUS_FAULTS=all`.
fn damages() -> u64 {
    if std::env::var("CHORUS_FAULTS").is_ok_and(|value| value == "all") { 300 } else { 8 }
}

type Texts = BTreeMap<&'static str, Vec<String>>;

/// A home after `kill -9` with messages in live.db and in its log, and what was acknowledged.
fn killed() -> (Home, Texts) {
    let home = home();
    let mut texts = Texts::new();
    for round in 0..2 {
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        for agent in AGENTS {
            if round == 0 {
                client.init(agent);
            }
            for n in 0..40 {
                let text = format!("{agent} {round} {n} {}", "word ".repeat(n));
                client.append(agent, &text);
                texts.entry(agent).or_default().push(text);
            }
        }
        if round == 0 {
            daemon.terminate();
        } else {
            daemon.kill9();
        }
    }
    (home, texts)
}

fn flip(path: &Path, rng: &mut Rng) -> String {
    let mut bytes = fs::read(path).expect("the file");
    let (at, bit) = (rng.below(bytes.len() as u64) as usize, rng.below(8));
    bytes[at] ^= 1 << bit;
    fs::write(path, bytes).expect("written");
    format!("bit {bit} of byte {at} of {}", path.display())
}

fn damage(home: &Home, rng: &mut Rng) -> String {
    let (database, log) = (journal(home), journal(home).with_extension("db-wal"));
    match rng.below(20) {
        0 => {
            fs::remove_file(&database).expect("removed");
            "live.db is missing".into()
        }
        1 => {
            fs::remove_file(&log).expect("removed");
            "the log is missing".into()
        }
        2..10 => flip(&database, rng),
        _ => flip(&log, rng),
    }
}

/// Counts the texts of `expected` that are not in `found`.
fn missing(expected: &[String], found: &[String]) -> usize {
    expected.iter().filter(|text| !found.contains(text)).count()
}

#[test]
fn no_damage_is_silent_and_the_rest_is_readable() {
    let (whole, expected) = killed();
    let (mut lost, mut all) = (0, 0);
    for seed in 0..damages() {
        let home = home();
        copy_all(&whole.path, &home.path);
        let mut rng = Rng::new(seed);
        let what = damage(&home, &mut rng);
        // Counts what is wrong before anything is salvaged.
        let (mut told, mut wrong) = (false, 0);
        match Daemon::try_start(&home, home.command(home.bins.chorusd)) {
            Err((_, said)) => {
                assert!(said.contains("live.db") && said.contains("doctor --salvage"), "{seed}, {what}: {said}");
                told = true;
            }
            Ok(daemon) => {
                let mut client = daemon.client();
                for (agent, texts) in &expected {
                    match try_texts(&mut client, agent) {
                        Ok(found) => wrong += usize::from(found != *texts),
                        Err(_) => told = true,
                    }
                }
                told |= trouble(&doctor(&home, &[])).iter().any(|check| check.verdict != Verdict::Info);
                told |= !set_aside(&home).is_empty();
                assert!(daemon.terminate().code().is_some(), "{seed}, {what}");
            }
        }
        assert!(told || wrong == 0, "{seed}, {what}: {wrong} contexts changed without a word");
        if told {
            chorusctl(&home, ["doctor", "--salvage"]);
        }
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        for (agent, texts) in &expected {
            let mut found = client.message_texts(agent);
            for session in client.history(agent) {
                let (_, messages) = client.get_session(agent, &session.header.id.to_string());
                found.extend(messages.into_iter().map(|message| message.content));
            }
            let gone = missing(texts, &found);
            assert!(found.iter().all(|text| texts.contains(text)), "{seed}, {what}: a message was changed");
            lost += gone;
            all += texts.len();
            if gone > 1 {
                println!("{seed}, {what}: {gone} of {} messages of {agent} cannot be read", texts.len());
            }
        }
    }
    println!("{lost} of {all} messages lost over {} damages", damages());
    assert!(lost * 20 < all, "{lost} of {all} messages could not be read");
}
