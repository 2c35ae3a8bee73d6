//! P10 without a fuzzer: the bodies of the targets in fuzz/, run on their seeds and on seeds bent at random.

use std::fs;
use std::path::Path;

use chorus_tests::fuzz::{event_stream, exported, frames, mutate, requests, session_file, shell_command, transcript};
use chorus_tests::rng::{Rng, rounds_from_env};

/// The seeds of a target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).expect("seeds").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 3, "{target} has few seeds");
    paths.into_iter().map(|path| fs::read(path).expect("a seed")).collect()
}

fn run(target: &str, body: fn(&[u8])) {
    run_for(3000, target, body);
}

fn run_for(times: u64, target: &str, body: fn(&[u8])) {
    let seeds = seeds(target);
    body(b"");
    seeds.iter().for_each(|seed| body(seed));
    let mut rng = Rng::new(10);
    for round in 0..rounds_from_env("CHORUS_FUZZ_ROUNDS", times) {
        let bent = mutate(&seeds[round as usize % seeds.len()], &mut rng);
        let caught = std::panic::catch_unwind(|| body(&bent));
        assert!(caught.is_ok(), "{target}, round {round}: {:?}", String::from_utf8_lossy(&bent));
    }
}

#[test]
fn frames_of_any_bytes() {
    run("frames", frames);
}

#[test]
fn requests_of_any_bytes() {
    run("requests", requests);
}

#[test]
fn session_files_of_any_bytes() {
    run("session_file", session_file);
}

#[test]
fn transcripts_of_any_bytes() {
    run("transcript", transcript);
}

#[test]
fn exports_of_any_texts() {
    // Each round writes and reads whole sessions.
    run_for(300, "exported", exported);
}

#[test]
fn event_streams_of_any_bytes() {
    run("event_stream", event_stream);
}

#[test]
fn shell_commands_of_any_bytes() {
    run("shell_command", shell_command);
}
