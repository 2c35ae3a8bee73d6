//! Frames bent at random: each is answered or ignored, and none ends the connection.

use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{Daemon, RawConnection};
use serde_json::json;

use crate::home;

const SEEDS: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{},"protocol":1}"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"context.append","params":{"agent":"a","text":"one","role":"user","key":"k"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"context.append","params":{"agent":"a","messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"c","name":"t","params":{"n":1e3}}]},{"role":"tool_result","tool_call_id":"c","content":"y","is_error":true}]}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"context.show","params":{"agent":"a","last":3,"offset":0,"limit":2}}"#,
];

/// Bytes that mean something in JSON, so that a bent frame gets further than the first brace.
const WORDS: [&[u8]; 12] = [b"{", b"}", b"[", b"]", b"\"", b"\\", b",", b"null", b"-1", b"1e999", b"\\ud800", b"\xff"];

fn bend(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = SEEDS[rng.below(4) as usize].as_bytes().to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(5) {
            0 => bytes[at] = rng.next_u64() as u8,
            1 => _ = bytes.remove(at),
            2 => bytes.truncate(at + 1),
            3 => _ = bytes.splice(at..at, WORDS[rng.below(12) as usize].iter().copied()).count(),
            _ => {
                let end = (at + rng.below(40) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                _ = bytes.splice(at..at, piece).count();
            }
        }
    }
    bytes
}

/// Reads until the answer to `probe` comes.
fn wait_for(raw: &mut RawConnection, probe: &str) {
    raw.send_frame(format!(r#"{{"jsonrpc":"2.0","id":"{probe}","method":"hello"}}"#));
    while raw.receive_json()["id"] != probe {}
}

#[test]
fn bent_frames_end_neither_connection_nor_daemon() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    let mut rng = Rng::new(2);
    for round in 0..rounds_from_env("CHORUS_FUZZ_ROUNDS", 2000) {
        raw.send_frame(bend(&mut rng));
        if round % 20 == 0 {
            wait_for(&mut raw, &format!("probe-{round}"));
        }
    }
    wait_for(&mut raw, "last");
    daemon.assert_alive();
}
