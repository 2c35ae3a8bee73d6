//! Imports that happen at the same time, and beside other changes of their agent.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Barrier;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::import::{ImportFormat, ImportOutcome};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use crate::home;

/// A line of a Claude Code transcript: the first of a conversation of its own.
fn line(n: usize, session: &str, aside: bool) -> String {
    format!(
        r#"{{"type":"user","uuid":"u{n}","parentUuid":null,"timestamp":"2025-06-14T10:00:00Z","isSidechain":{aside},"sessionId":"{session}","version":"1.0.0","message":{{"role":"user","content":"question {n}"}}}}"#
    )
}

#[test]
fn the_same_file_many_times_at_once_gives_one_session() {
    const TOGETHER: usize = 8;
    const ROUNDS: usize = 5;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for round in 0..ROUNDS {
        let text = line(0, &format!("00000000-0000-4000-8000-00000000000{round}"), false);
        let begin = Barrier::new(TOGETHER);
        let results: Vec<_> = std::thread::scope(|scope| {
            let import = || {
                let mut client = daemon.client();
                begin.wait();
                import_transcript(&mut client, "a", ImportFormat::ClaudeCode, &text, 10_000)
            };
            let threads: Vec<_> = (0..TOGETHER).map(|_| scope.spawn(import)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
        });
        let results: Vec<_> = results.into_iter().map(|result| result.expect("every import is taken")).collect();
        let ids: BTreeSet<_> = results.iter().flat_map(|result| &result.sessions).map(|one| one.header.id).collect();
        assert_eq!(ids.len(), 1, "all got the same session");
        let outcomes = results.iter().flat_map(|result| &result.conversations).map(|one| one.outcome);
        assert_eq!(outcomes.filter(|outcome| *outcome == ImportOutcome::New).count(), 1, "one has saved it");
        assert_eq!(client.history("a").len(), round + 1);
    }
    assert!(client.history("a").iter().all(|session| session.available));
    assert_eq!(fs::read_dir(home.sessions_dir("a")).expect("sessions/").count(), ROUNDS);
}

/// In any order of arrival, the session gets every message once, and never loses one.
#[test]
fn of_several_imports_of_a_growing_conversation_none_takes_anything_away() {
    const LINES: usize = 24;
    const TOGETHER: usize = 6;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let lines: Vec<String> = (0..LINES)
        .map(|n| {
            let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
            line(n, "00000000-0000-4000-8000-000000000001", false)
                .replace("\"parentUuid\":null", &format!("\"parentUuid\":{parent}"))
        })
        .collect();
    let begin = Barrier::new(TOGETHER);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let (lines, begin, daemon) = (&lines, &begin, &daemon);
        let import = |first: usize| {
            move || {
                let mut client = daemon.client();
                begin.wait();
                let lengths = (first..=LINES).step_by(TOGETHER).chain([LINES]);
                let results = lengths.map(|length| {
                    let text = lines[..length].join("\n");
                    import_transcript(&mut client, "a", ImportFormat::ClaudeCode, &text, 10_000).expect("imported")
                });
                results.flat_map(|result| result.conversations).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (1..=TOGETHER).map(|first| scope.spawn(import(first))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    });
    assert!(outcomes.iter().all(|one| one.outcome != ImportOutcome::Revision), "{outcomes:?}");
    assert_eq!(outcomes.iter().map(|one| one.added).sum::<u64>(), LINES as u64, "each message was added once");
    let [session] = &client.history("a")[..] else { panic!("one session") };
    let (_, messages) = client.get_session("a", &session.header.session_id);
    let texts: Vec<_> = messages.iter().map(|message| message.content.clone()).collect();
    assert_eq!(texts, (0..LINES).map(|n| format!("question {n}")).collect::<Vec<_>>());
}

#[test]
fn an_agent_that_is_renamed_meanwhile_gets_every_session() {
    const SESSIONS: usize = 60;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let text: String = (0..SESSIONS).map(|n| line(n, "s", n > 0) + "\n").collect();
    let mut names = ["a", "b"];
    let mut renames = 0;
    let imported = std::thread::scope(|scope| {
        let mut client = daemon.client();
        let importing =
            scope.spawn(move || import_transcript(&mut client, "a", ImportFormat::ClaudeCode, &text, 100_000));
        let mut client = daemon.client();
        wait_until("the first session", DEADLINE, || (!client.history("a").is_empty()).then_some(()));
        while !importing.is_finished() || renames == 0 {
            let [from, to] = names;
            let rename = ConfigParams { name: from.into(), key: Some("name".into()), value: Some(to.into()) };
            client.call::<Config>(&rename).expect("renamed");
            names = [to, from];
            renames += 1;
        }
        importing.join().expect("a client")
    });
    let [name, before] = names;
    let sessions = imported.expect("imported").sessions;
    assert_eq!(sessions.len(), SESSIONS);
    assert!(!home.agent_dir(before).exists(), "something was left where it was");
    assert_eq!(fs::read_dir(home.sessions_dir(name)).expect("sessions/").count(), SESSIONS);
    let folders: BTreeSet<_> = sessions.iter().map(|session| Path::new(&session.file_path).parent()).collect();
    assert_eq!(folders.len(), 1, "the answer says where all of them were then");
    let listed = client.history(name);
    assert!(listed.len() == SESSIONS && listed.iter().all(|session| session.available), "after {renames} renames");
}
