//! Bytes that are no good frames.

use std::time::{Duration, Instant};

use chorus_tests::Daemon;
use serde_json::Value;

use crate::home;

fn is_error(answer: &Value, codes: &[i64]) {
    let code = answer["error"]["code"].as_i64().expect("an error");
    assert!(codes.contains(&code), "{answer}");
}

#[test]
fn an_empty_frame_is_an_error_and_the_connection_goes_on() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let answer = raw.exchange("");
    is_error(&answer, &[-32700, -32600]);
    assert_eq!(answer["id"], Value::Null);
    raw.check_hello();
}

#[test]
fn too_long_a_frame_is_an_error_and_the_end() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    for length in [u32::MAX, 16 * 1024 * 1024 + 1] {
        let mut raw = daemon.raw_connection();
        raw.send_bytes(&length.to_be_bytes());
        let answer = raw.receive_json();
        assert_eq!(answer["error"]["data"]["kind"], "frame_too_long", "{answer}");
        assert!(raw.wait_until_closed());
    }
    daemon.assert_alive();
}

#[test]
fn the_limit_of_a_frame_can_be_set() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut raw = daemon.raw_connection();
    raw.send_bytes(&(64 * 1024 + 1_u32).to_be_bytes());
    assert_eq!(raw.receive_json()["error"]["data"]["kind"], "frame_too_long");
    assert!(raw.wait_until_closed());
}

#[test]
fn a_frame_cut_short_harms_nobody() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut beside = daemon.raw_connection();
    let mut cut = daemon.raw_connection();
    cut.send_bytes(&100_u32.to_be_bytes());
    cut.send_bytes(b"{\"jsonrpc\"");
    cut.shutdown_write();
    assert!(cut.wait_until_closed());
    beside.check_hello();
    daemon.assert_alive();
}

#[test]
fn silence_after_a_header_ends_the_connection_and_silence_before_one_does_not() {
    let home = home();
    let daemon = Daemon::start_with(&home, "frame_timeout = \"300ms\"\n");
    let mut quiet = daemon.raw_connection();
    let mut header_only = daemon.raw_connection();
    let mut half = daemon.raw_connection();
    let begun = Instant::now();
    header_only.send_bytes(&50_u32.to_be_bytes());
    half.send_bytes(&[0, 0]);
    assert!(header_only.wait_until_closed());
    assert!(half.wait_until_closed());
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(250), "closed after {waited:?} already");
    // This one has been silent for just as long, but owes nothing.
    quiet.check_hello();
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let body = br#"{"jsonrpc":"2.0","id":"slow","method":"hello"}"#;
    let frame = [&(body.len() as u32).to_be_bytes()[..], body].concat();
    for byte in frame {
        raw.send_bytes(&[byte]);
    }
    let answer = raw.receive_json();
    assert_eq!(answer["id"], "slow");
    assert_eq!(answer["result"]["server"], "chorusd");
}

#[test]
fn what_is_not_utf8_or_not_json_is_an_error_and_the_connection_goes_on() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let bad: [&[u8]; 7] = [
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"} trailing",
        b"\0\0\0\0",
        b"nonsense",
        b"\xef\xbb\xbf{}",
    ];
    for body in bad {
        is_error(&raw.exchange(body), &[-32700]);
        raw.check_hello();
    }
}
