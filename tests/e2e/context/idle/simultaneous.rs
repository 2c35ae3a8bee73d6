//! Timers that fall due together.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Home, InProcessDaemon};
use serde_json::Value;

use super::{MINUTE, TIMEOUT, busy, hands, put_away, saved_once, wait_for};
use crate::home;

const MANY: usize = 300;

#[test]
fn two_agents_due_in_one_instant_are_both_put_away_once() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    // The clock stands still: they are due at the same nanosecond.
    busy(&mut client, "a", "30m");
    busy(&mut client, "b", "30m");
    hands.advance(TIMEOUT);
    let both: BTreeSet<String> = wait_for(&mut client, 2).into_iter().collect();
    assert_eq!(both, ["a", "b"].map(String::from).into());
    busy(&mut client, "sentinel", "30m");
    hands.advance(MINUTE * 60 * 24);
    assert_eq!(wait_for(&mut client, 3)[2], "sentinel");
    for agent in ["a", "b"] {
        assert!(client.message_texts(agent).is_empty());
        saved_once(&mut client, agent);
    }
}

/// Directories of agents, made as a copy of a home would bring them: the next start takes them up.
fn settle(home: &Home, first: &str, count: usize) -> Vec<String> {
    let text = fs::read_to_string(home.agent_dir(first).join("agent.json")).expect("agent.json");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let name = |n: usize| format!("a{n}");
    for n in 0..count {
        let dir = home.agent_dir(&name(n));
        fs::create_dir_all(dir.join("sessions")).expect("its directories");
        config["name"] = name(n).into();
        config["id"] = format!("{n:08x}-0000-4000-8000-{n:012x}").into();
        fs::write(dir.join("agent.json"), config.to_string()).expect("its agent.json");
    }
    (0..count).map(name).collect()
}

#[test]
fn hundreds_of_contexts_due_within_one_second_are_all_put_away_once() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    daemon.client().init("first");
    daemon.stop().expect("an orderly end");
    let names = settle(&home, "first", MANY);
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    let step = Duration::from_secs(1) / u32::try_from(MANY).expect("a small number");
    for name in &names {
        client.append(name, &format!("A word of {name}."));
        hands.advance(step);
    }
    // The second in which they fall due, in ten parts: the timers ring while contexts are being put away.
    hands.advance(TIMEOUT - Duration::from_secs(1));
    for _ in 0..10 {
        hands.advance(Duration::from_millis(100));
    }
    let found = wait_for(&mut client, MANY);
    assert_eq!(found.len(), MANY);
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names.iter().cloned().collect());
    for name in &names {
        saved_once(&mut client, name);
    }
    // Nothing is left that could ring.
    busy(&mut client, "sentinel", "30m");
    hands.advance(MINUTE * 60 * 24);
    wait_for(&mut client, MANY + 1);
    assert_eq!(put_away(&mut client).len(), MANY + 1);
}
