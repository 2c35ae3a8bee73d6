//! `kill -9` while clients talk in several conversations of one agent, and a stop in the middle of their turns.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{CallError, Client, NewMessage, Role, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{DEADLINE, Daemon, Fixture};

use super::{list, open, texts};
use crate::crash::oracle::Oracle;
use crate::home;

const CLIENTS: u64 = 4;

/// The conversations that a client talks in, in turn: `main`, which all share, and its own.
fn conversations(client: u64) -> [String; 2] {
    ["main".to_owned(), format!("c{client}")]
}

/// Appends until the daemon is gone; gives how many were acknowledged and sent, for each conversation.
fn work(mut connection: Client, client: u64, from: [u64; 2], mut acknowledged: impl FnMut()) -> [(u64, u64); 2] {
    let mut next = from;
    for at in (0..2).cycle() {
        let many = 1 + next[at] % 2;
        let text = |n| NewMessage::text(Role::User, Oracle::text(client, n));
        let params = AppendParams {
            agent: Some("a".into()),
            conversation: Some(conversations(client)[at].clone()),
            messages: (next[at]..next[at] + many).map(text).collect(),
            ..Default::default()
        };
        match connection.call::<Append>(&params) {
            Ok(_) => next[at] += many,
            Err(CallError::Io(_)) => {
                let sent = |n: usize| if n == at { next[n] + many } else { next[n] };
                return [(next[0], sent(0)), (next[1], sent(1))];
            }
            Err(other) => panic!("append: {other}"),
        }
        acknowledged();
    }
    unreachable!("the daemon is killed")
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_reordered_in_any_of_them() {
    let (home, mut rng) = (home(), Rng::new(23));
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut main = Oracle::default();
    let mut own: Vec<Oracle> = (0..CLIENTS).map(|_| Oracle::default()).collect();
    for n in 0..CLIENTS {
        let params = NewParams { agent: Some("a".into()), name: format!("c{n}"), ..Default::default() };
        client.call::<New>(&params).expect("conversations.new");
    }
    for round in 0..rounds_from_env("CHORUS_CRASH_ROUNDS", 5) {
        let (acks, acknowledged) = sync_channel(100_000);
        let done: Vec<_> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|n| {
                    let (acks, connection) = (acks.clone(), daemon.client());
                    let from = [main.acked(n), own[usize::try_from(n).expect("small")].acked(n)];
                    scope.spawn(move || work(connection, n, from, || _ = acks.send(())))
                })
                .collect();
            for _ in 0..20 + rng.below(100) {
                acknowledged.recv_timeout(DEADLINE).expect("an acknowledgement");
            }
            chorus_tests::process::kill(daemon.pid);
            drop(acknowledged);
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        for (n, [of_main, of_own]) in (0..CLIENTS).zip(done) {
            main.set(n, of_main.0, of_main.1);
            own[usize::try_from(n).expect("small")].set(n, of_own.0, of_own.1);
        }
        daemon.kill9();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        main.compare(&client.message_texts("a"));
        for (n, oracle) in own.iter_mut().enumerate() {
            oracle.compare(&texts(&mut client, &format!("c{n}")));
        }
        assert!(!daemon.read_log().contains("panicked"), "round {round}: {}", daemon.read_log());
    }
}

#[test]
fn ten_of_one_agent_in_mid_turn_are_all_saved_by_a_stop() {
    let mut fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", None);
    let limit = ConfigParams { name: "a".into(), key: Some("concurrent_turns".into()), value: Some("10".into()) };
    fixture.client().call::<Config>(&limit).expect("agent.config");
    fixture.models().anthropic().set_fallback(Response::text(["Half a word"]).gate("never"));
    let names: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
    let mut turns = Vec::new();
    for name in &names {
        open(&mut fixture.client(), name);
        let params = SendParams {
            agent: Some("a".into()),
            conversation: Some(name.clone()),
            text: "Talk.".into(),
            ..Default::default()
        };
        let mut client = fixture.client();
        turns.push(std::thread::spawn(move || client.call::<Send>(&params)));
    }
    let calls = fixture.models().wait_for_requests(10).len();
    let begun = Instant::now();
    fixture.stop();
    assert!(begun.elapsed() < Duration::from_secs(10));
    for turn in turns {
        assert!(turn.join().expect("a client").is_err());
    }
    assert_eq!(fixture.models().requests().len(), calls, "no model is called on the way out");
    fixture.start();
    let mut client = fixture.client();
    let sessions = client.history("a");
    assert_eq!(sessions.len(), 10);
    assert!(sessions.iter().all(|session| session.header.trigger == Trigger::Shutdown));
    for found in list(&mut client, false).into_iter().filter(|found| found.name != "main") {
        assert_eq!(found.context.expect("live").unsaved, 0, "{}", found.name);
        assert_eq!(texts(&mut client, &found.name)[0], "Talk.");
    }
}
