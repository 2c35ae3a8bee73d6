//! Kills of the daemon in the middle of runs: none is lost, and none is there twice.

use chorus_proto::methods::schedule::{Run, RunParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{HOUR, add, every, find, sent};
use crate::home;

/// `CHORUS_CRASH_ROUNDS=100` is the promise.
#[test]
fn a_kill_at_any_moment_loses_no_run_and_doubles_none() {
    let (server, home) = (ModelServer::start(), home());
    home.write_config(&server.config_toml());
    server.anthropic().set_fallback(Response::text(["Do", "ne."]));
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    add(&mut client, every("look", HOUR));
    drop(client);
    let (mut rng, mut requested) = (Rng::new(7), 0);
    for round in 0..rounds_from_env("CHORUS_CRASH_ROUNDS", 10) {
        let pid = daemon.pid;
        let mut client = daemon.client();
        let delay = std::time::Duration::from_micros(rng.below(25_000));
        let killer = std::thread::spawn(move || {
            // Nothing comes: this only waits.
            let (_sender, nothing) = std::sync::mpsc::sync_channel::<()>(1);
            let _ = nothing.recv_timeout(delay);
            chorus_tests::process::kill(pid);
        });
        let run = RunParams { agent: Some("a".into()), name: "look".into() };
        let acknowledged = client.call::<Run>(&run).is_ok();
        killer.join().expect("the killer");
        drop(client);
        daemon.kill9();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let ended = wait_until("the run", DEADLINE, || {
            let schedule = find(&mut client, "look");
            schedule.pending_at.is_none().then_some(schedule)
        });
        // The first run creates it.
        let exists = client.conversation_exists("a", "schedule-look");
        let messages = if exists { sent(&mut client, "schedule-look") } else { Vec::new() };
        let recorded = (messages.len(), ended.runs.len().min(20));
        assert!(messages.len() >= requested + usize::from(acknowledged), "round {round}: a run is lost: {recorded:?}");
        assert!(messages.len() <= requested + 1, "round {round}: a run is there twice: {recorded:?}");
        assert!(ended.runs.len() == messages.len().min(20), "round {round}: {recorded:?}");
        requested = messages.len();
    }
    assert!(requested > 0, "no run was requested in time");
}
