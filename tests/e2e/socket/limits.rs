//! Too many, too much, or gone too early: a client harms itself only.

use std::sync::atomic::{AtomicBool, Ordering};

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, RawConnection, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A connection that was counted, once there is room for it.
fn counted(daemon: &Daemon) -> RawConnection {
    wait_until("room for one more connection", DEADLINE, || {
        let mut raw = daemon.raw_connection();
        let answer = raw.call("hello", json!({}));
        answer["result"].is_object().then_some(raw)
    })
}

fn full(home: &Home) -> (Daemon, Vec<RawConnection>) {
    let daemon = Daemon::start_with(home, "max_connections = 4\n");
    let held = (0..4).map(|_| counted(&daemon)).collect();
    (daemon, held)
}

fn refused(answer: &Value) {
    assert_eq!(answer["error"]["data"]["kind"], "busy", "{answer}");
}

#[test]
fn clients_that_never_stop_talking_keep_nobody_from_being_heard() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let mut raw = daemon.raw_connection();
            let stop = &stop;
            scope.spawn(move || {
                // Nobody answers a notification, so nothing but the daemon's own will makes it pause.
                while !stop.load(Ordering::Relaxed) {
                    raw.send_until_blocked(r#"{"jsonrpc":"2.0","method":"hello","params":{"protocol":1}}"#, 1000);
                }
            });
        }
        for _ in 0..20 {
            client.call::<Status>(&StatusParams::default()).expect("an answer");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn connections_past_the_limit_are_told_busy_and_the_others_go_on() {
    let home = home();
    let (daemon, mut held) = full(&home);
    for _ in 0..20 {
        let mut over = daemon.raw_connection();
        refused(&over.call("hello", json!({})));
        assert!(over.wait_until_closed());
    }
    held.iter_mut().for_each(RawConnection::check_hello);
    held.pop();
    counted(&daemon).check_hello();
}

#[test]
fn the_command_line_says_busy_too() {
    let home = home();
    let (_daemon, _held) = full(&home);
    let said = chorusctl(&home, ["--no-autostart", "status"]);
    said.expect_failure_with_hint(7);
}

#[test]
fn five_hundred_connections_are_no_trouble() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_connections = 100\n");
    let mut all: Vec<RawConnection> = (0..500).map(|_| daemon.raw_connection()).collect();
    let busy = all
        .iter_mut()
        .map(|raw| raw.call("hello", json!({})))
        .filter(|answer| answer["error"]["data"]["kind"] == "busy")
        .count();
    assert!((400..=401).contains(&busy), "{busy} of 500 were refused at a limit of 100");
    drop(all);
    // The places become free one by one.
    counted(&daemon).check_hello();
}

#[test]
fn a_client_that_leaves_in_mid_reply_harms_nobody() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for _ in 0..4 {
        client.append("a", &"x".repeat(2 * 1024 * 1024));
    }
    for _ in 0..20 {
        let mut raw = daemon.raw_connection();
        raw.send_frame(
            json!({"jsonrpc": "2.0", "id": 1, "method": "context.show", "params": {"agent": "a"}}).to_string(),
        );
    }
    assert_eq!(client.message_texts("a").len(), 4);
    daemon.assert_alive();
}

#[test]
fn a_client_that_never_reads_harms_nobody() {
    let home = home().without_index();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &"x".repeat(1024 * 1024));
    let before = daemon.memory();
    let mut deaf = daemon.raw_connection();
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "context.show", "params": {"agent": "a"}}).to_string();
    // As many as fit into the socket: the daemon must not read on while its answers are not taken.
    deaf.send_until_blocked(&ask, 5000);
    client.append("a", "beside it");
    let growth = daemon.memory().saturating_sub(before);
    assert!(growth < 128 * 1024 * 1024, "{growth} bytes for answers that nobody reads");
    drop(deaf);
    daemon.assert_alive();
}
