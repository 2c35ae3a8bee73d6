//! The rounds: work, `kill -9` at a random moment, restart, compare.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use chorus_proto::methods::context;
use chorus_proto::{CallError, Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{DEADLINE, Daemon};

use super::oracle::Oracle;
use super::single_client::Solo;
use crate::home;

const CLIENTS: u64 = 4;
/// Each round reads all that the rounds before it left: a new home keeps many rounds affordable.
const ROUNDS_A_HOME: u64 = 15;

/// Appends to the agent they all share until the daemon is gone; gives how many were acknowledged and sent.
fn append_to_shared(mut connection: Client, client: u64, from: u64, acks: &SyncSender<()>) -> (u64, u64) {
    let mut next = from;
    loop {
        // Two at a time now and then: all or nothing.
        let many = 1 + next % 2;
        let messages = (next..next + many).map(|n| NewMessage::text(Role::User, Oracle::text(client, n))).collect();
        let params = context::AppendParams { agent: Some("shared".into()), messages, ..Default::default() };
        match connection.call::<context::Append>(&params) {
            Ok(_) => next += many,
            Err(CallError::Io(_)) => return (next, next + many),
            Err(other) => panic!("append: {other}"),
        }
        _ = acks.send(());
    }
}

/// Waits for `count` acknowledgements and a little longer, so that the kill falls anywhere within a request.
fn wait_for_acks(acks: &Receiver<()>, count: u64, extra: Duration) {
    for _ in 0..count {
        acks.recv_timeout(DEADLINE).expect("an acknowledgement");
    }
    let end = std::time::Instant::now() + extra;
    while std::time::Instant::now() < end {
        _ = acks.try_recv();
        std::hint::spin_loop();
    }
}

/// Crash after crash in one home, whose content grows with them.
fn crashes(rounds: u64, rng: &mut Rng) {
    let home = home();
    let shared = Mutex::new(Oracle::default());
    let mut solos: Vec<Solo> = (0..CLIENTS).map(|n| Solo::new(format!("solo-{n}"), rng.next_u64())).collect();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("shared");
    (0..CLIENTS).for_each(|n| client.init(&format!("solo-{n}")));

    for round in 0..rounds {
        let (acks, acknowledged) = sync_channel(100_000);
        std::thread::scope(|scope| {
            for n in 0..CLIENTS {
                // Connected here: a thread may get its first turn only after the kill.
                let (acks, shared, connection) = (acks.clone(), &shared, daemon.client());
                scope.spawn(move || {
                    let from = shared.lock().expect("the oracle").acked(n);
                    let (acked, sent) = append_to_shared(connection, n, from, &acks);
                    shared.lock().expect("the oracle").set(n, acked, sent);
                });
            }
            for solo in &mut solos {
                let (acks, mut connection) = (acks.clone(), daemon.client());
                scope.spawn(move || solo.work(&mut connection, || _ = acks.send(())));
            }
            wait_for_acks(&acknowledged, 20 + rng.below(200), Duration::from_micros(rng.below(4000)));
            chorus_tests::process::kill(daemon.pid);
            // The clients end by themselves; until then their acknowledgements must not fill the channel.
            drop(acknowledged);
        });
        daemon.kill9();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        shared.lock().expect("the oracle").compare(&client.message_texts("shared"));
        solos.iter_mut().for_each(|solo| solo.compare(&mut client));
        assert!(!daemon.read_log().contains("panicked"), "round {round}: {}", daemon.read_log());
    }
}

/// `CHORUS_CRASH_ROUNDS=300` is the promise.
#[test]
fn nothing_acknowledged_is_lost_doubled_or_reordered() {
    let (mut rng, mut left) = (Rng::new(1), rounds_from_env("CHORUS_CRASH_ROUNDS", 10));
    while left > 0 {
        let here = left.min(ROUNDS_A_HOME);
        crashes(here, &mut rng);
        left -= here;
    }
}
