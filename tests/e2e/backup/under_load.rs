//! A backup while others work: nobody waits for it, and what was acknowledged before it is in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams, Clear, ClearParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{archived, back_up, restored, verified};
use crate::home;

const CLIENTS: usize = 4;

fn append_until(mut client: Client, number: usize, stop: &AtomicBool, acked: &AtomicU64) {
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let text = Some(format!("client {number} message {n}"));
        client
            .call::<Append>(&AppendParams { agent: Some("shared".into()), text, ..Default::default() })
            .expect("acknowledged");
        acked.fetch_add(1, Ordering::SeqCst);
    }
}

/// Saves sessions, clears the conversation, and deletes every third session.
fn save_and_delete(mut client: Client, stop: &AtomicBool, saved: &AtomicU64) {
    for n in 0_u64.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        client.append("moving", &format!("story {n}"));
        let session = client.save("moving", &format!("story {n}")).header.session_id;
        client
            .call::<Clear>(&ClearParams { conversation: None, agent: Some("moving".into()), save: false })
            .expect("cleared");
        saved.store(n + 1, Ordering::SeqCst);
        if n % 3 == 2 {
            client
                .call::<Delete>(&DeleteParams { conversation: None, agent: Some("moving".into()), session, own: false })
                .expect("deleted");
        }
    }
}

/// Each client's messages are there from the first on, in their order, and at least those that were acknowledged.
fn compare(texts: &[String], acked: &[u64]) {
    for (number, due) in acked.iter().enumerate() {
        let begins = format!("client {number} message ");
        let found: Vec<u64> = texts.iter().filter_map(|text| text.strip_prefix(&begins)?.parse().ok()).collect();
        assert!(found.iter().copied().eq(0..found.len() as u64), "client {number}: lost, doubled or reordered");
        assert!(found.len() as u64 >= *due, "client {number}: {} of {due} acknowledged messages", found.len());
    }
}

#[test]
fn what_was_acknowledged_before_a_backup_is_in_it() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("shared");
    daemon.client().init("moving");
    let stop = AtomicBool::new(false);
    let acked: [AtomicU64; CLIENTS] = Default::default();
    let saved = AtomicU64::new(0);
    let counts = || acked.each_ref().map(|count| count.load(Ordering::SeqCst));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        for (number, acked) in acked.iter().enumerate() {
            let (client, stop) = (daemon.client(), &stop);
            scope.spawn(move || append_until(client, number, stop, acked));
        }
        let (client, stop_it, saved_it) = (daemon.client(), &stop, &saved);
        scope.spawn(move || save_and_delete(client, stop_it, saved_it));
        for round in 0..3 {
            let from = counts();
            wait_until("everybody to go on", DEADLINE, || {
                (counts().iter().zip(from).all(|(now, from)| *now >= from + 20)
                    && saved.load(Ordering::SeqCst) > round * 4)
                    .then_some(())
            });
            let (due, stories) = (counts(), saved.load(Ordering::SeqCst));
            let source = if round == 2 {
                archived(&one, "backup.tar")
            } else {
                let dir = one.temp_dir().join(format!("backup-{round}"));
                back_up(&one, &dir);
                dir
            };
            made.push((source, due, stories));
        }
        stop.store(true, Ordering::SeqCst);
    });
    for (source, due, stories) in made {
        assert_eq!(verified(&one, &source).warnings, Vec::<String>::new());
        let two = restored(&source);
        let there = Daemon::start(&two);
        compare(&there.client().message_texts("shared"), &due);
        let sessions = there.client().history("moving");
        assert!(sessions.iter().all(|session| session.available && session.corrupt.is_none()), "{sessions:?}");
        for n in (0..stories).filter(|n| n % 3 != 2) {
            let name = format!("_story-{n}");
            assert!(sessions.iter().any(|session| session.header.session_id.ends_with(&name)), "{name} is missing");
        }
    }
}
