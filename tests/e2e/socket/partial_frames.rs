//! Frames that begin and do not end, or arrive slowly.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use serde_json::{Value, json};

use crate::home;

/// At 64 KiB a second a client must send 19 KiB in this time.
const TIMEOUT: &str = "frame_timeout = \"300ms\"\n";
const EVERY: Duration = Duration::from_millis(50);
const MIB: usize = 1 << 20;

fn header(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a length").to_be_bytes()
}

/// A `hello` of `length` bytes.
fn hello(length: usize) -> Vec<u8> {
    let mut body = br#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#.to_vec();
    body.resize(length, b' ');
    body
}

fn is_hello(answer: &Value) {
    assert_eq!(answer["result"]["server"], "chorusd", "{answer}");
}

#[test]
fn a_byte_now_and_then_does_not_keep_a_frame_open() {
    let home = home();
    let daemon = Daemon::start_with(&home, TIMEOUT);
    for length in [100, 15 * MIB] {
        let mut raw = daemon.raw_connection();
        raw.send_bytes(&header(length));
        let taken = raw.drip(b" ", EVERY, 80);
        assert!((1..80).contains(&taken), "{taken} bytes of {length} in {:?}", EVERY * 80);
        assert!(raw.wait_until_closed());
    }
    daemon.raw_connection().check_hello();
}

#[test]
fn events_do_not_keep_a_frame_open() {
    let home = home();
    let daemon = Daemon::start_with(&home, "frame_timeout = \"1s\"\n");
    let mut raw = daemon.raw_connection();
    assert!(raw.call("events.subscribe", json!({}))["error"].is_null());
    let closed = AtomicBool::new(false);
    let heard = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = daemon.client();
            let mut names = (0..200).map(|number| format!("a{number}"));
            while !closed.load(Ordering::Relaxed)
                && let Some(name) = names.next()
            {
                client.init(&name);
            }
        });
        // Events come, more often than the time-out.
        assert!(raw.receive().is_some());
        raw.send_bytes(&header(100));
        let heard = iter::from_fn(|| raw.receive()).count();
        closed.store(true, Ordering::Relaxed);
        heard
    });
    assert!(heard < 150, "{heard} events");
}

#[test]
fn a_slow_client_is_served() {
    let home = home();
    let daemon = Daemon::start_with(&home, TIMEOUT);
    let mut raw = daemon.raw_connection();
    // 200 KiB a second, for four times as long as the time-out.
    let (length, piece) = (250 << 10, 10 << 10);
    let body = hello(length);
    raw.send_bytes(&header(length));
    raw.send_bytes(&body[..piece]);
    let times = length / piece - 2;
    assert_eq!(raw.drip(&vec![b' '; piece], EVERY, times), times);
    raw.send_bytes(&body[length - piece..]);
    is_hello(&raw.receive_json());
    raw.check_hello();
}

/// Clients that keep the least rate would hold the room for minutes.
#[test]
fn slow_clients_leave_their_room_to_one_that_waits() {
    let home = home();
    let daemon = Daemon::start_with(&home, "frame_timeout = \"1s\"\n");
    let mut held: Vec<_> = (0..8).map(|_| daemon.raw_connection()).collect();
    held.iter_mut().for_each(|raw| raw.send_bytes(&header(16 * MIB)));
    let served = AtomicBool::new(false);
    let evicted = std::thread::scope(|scope| {
        let slow: Vec<_> = held
            .iter_mut()
            .map(|raw| {
                scope.spawn(|| {
                    let answer = raw.drip_while(&[b' '; 20 << 10], EVERY, || !served.load(Ordering::Relaxed));
                    answer.or_else(|| {
                        raw.shutdown_write();
                        raw.receive()
                    })
                })
            })
            .collect();
        let answer = daemon.raw_connection().exchange(hello(15 * MIB));
        served.store(true, Ordering::Relaxed);
        is_hello(&answer);
        slow.into_iter().filter_map(|slow| slow.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(evicted.len(), 1, "of the others nobody had to leave");
    let answer: Value = serde_json::from_slice(&evicted[0]).expect("an answer");
    assert_eq!(answer["error"]["data"]["kind"], "busy", "{answer}");
}

#[test]
fn a_long_frame_waits_for_room_or_is_answered_busy() {
    let home = home();
    let daemon = Daemon::start_with(&home, "frame_timeout = \"2s\"\n");
    // Eight frames of 16 MiB have room.
    let begun = |_| {
        let mut raw = daemon.raw_connection();
        raw.send_bytes(&header(16 * MIB));
        raw.send_bytes(&[b' '; 100]);
        raw
    };
    let mut held: Vec<_> = (0..8).map(begun).collect();
    // All of it was read before this is answered, or nearly.
    daemon.raw_connection().check_hello();
    let mut waiting = daemon.raw_connection();
    let body = hello(MIB);
    waiting.send_bytes(&header(body.len()));
    waiting.send_bytes(&body[..100]);
    // Small ones need no room.
    daemon.raw_connection().check_hello();
    let mut small = daemon.raw_connection();
    is_hello(&small.exchange(hello(64 << 10)));
    // Those that hold it are closed, and whoever waited goes on or was told.
    held.iter_mut().for_each(|raw| assert!(raw.wait_until_closed()));
    waiting.send_bytes(&body[100..]);
    let answer = waiting.receive_json();
    if answer["error"].is_null() {
        is_hello(&answer);
    } else {
        assert_eq!(answer["error"]["data"]["kind"], "busy", "{answer}");
        assert!(waiting.wait_until_closed());
    }
    is_hello(&daemon.raw_connection().exchange(hello(15 * MIB)));
}
