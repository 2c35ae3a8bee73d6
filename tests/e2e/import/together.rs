//! Imports that happen at the same time, and beside other changes of their agent.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Barrier;

use chorus_proto::methods::import::ImportFormat;
use chorus_tests::Daemon;
use chorus_tests::chat::Chat as _;
use chorus_tests::import::import;

use crate::home;

/// A Claude Code transcript whose session has an id of its own.
fn transcript(id: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2025-06-14T10:00:00Z","isSidechain":false,"sessionId":"{id}","version":"1.0.0","message":{{"role":"user","content":"a question"}}}}"#
    )
}

#[test]
fn the_same_file_many_times_at_once_gives_a_session_each() {
    const TOGETHER: usize = 8;
    const ROUNDS: usize = 5;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for round in 0..ROUNDS {
        let text = transcript(&format!("00000000-0000-4000-8000-00000000000{round}"));
        let begin = Barrier::new(TOGETHER);
        let results: Vec<_> = std::thread::scope(|scope| {
            let import = || {
                let mut client = daemon.client();
                begin.wait();
                import(&mut client, "a", ImportFormat::ClaudeCode, &text, 10_000)
            };
            let threads: Vec<_> = (0..TOGETHER).map(|_| scope.spawn(import)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
        });
        let given: BTreeSet<_> = results
            .into_iter()
            .flat_map(|result| result.expect("every import is taken").sessions)
            .map(|session| session.header.id)
            .collect();
        assert_eq!(given.len(), TOGETHER, "each has an id of its own");
        let listed: BTreeSet<_> = client.history("a").into_iter().map(|session| session.header.id).collect();
        assert!(given.is_subset(&listed), "round {round}: what was acknowledged is listed");
        assert_eq!(listed.len(), TOGETHER * (round + 1));
    }
    assert!(client.history("a").iter().all(|session| session.available));
    assert_eq!(fs::read_dir(home.sessions("a")).expect("sessions/").count(), TOGETHER * ROUNDS);
}
