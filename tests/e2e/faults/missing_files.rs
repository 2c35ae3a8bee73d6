//! Files and directories that go away, or grow beyond measure, under a running daemon.

use std::fs;
use std::process::Command;

use chorus_proto::methods::context::{Restore, RestoreParams, Save, SaveParams};
use chorus_proto::{CallError, Client};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::{DEADLINE, Daemon, Home, process, wait_until};

use crate::home;

/// Agents `a`, with a session and a live message, and `b` beside it.
fn two_agents(home: &Home) -> (Daemon, Client) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        client.append(agent, "one");
        client.save(agent, "one");
    }
    (daemon, client)
}

fn save(client: &mut Client) -> Result<String, CallError> {
    let params = SaveParams { agent: Some("a".into()), ..Default::default() };
    client.call::<Save>(&params).map(|saved| saved.session.file_path)
}

fn restore(client: &mut Client) -> Result<(), CallError> {
    let params =
        RestoreParams { agent: Some("a".into()), session: "latest".into(), discard: true, ..Default::default() };
    client.call::<Restore>(&params).map(drop)
}

#[test]
fn a_directory_that_is_removed_while_its_sessions_are_listed_is_a_clear_error() {
    for what in ["agents/a/sessions", "agents/a"] {
        let home = home();
        let (mut daemon, mut client) = two_agents(&home);
        fs::remove_dir_all(home.path.join(what)).expect("removed");
        let sessions = client.history("a");
        assert!(sessions.len() == 1 && !sessions[0].available, "{what}: {sessions:?}");
        _ = expect_error_kind(restore(&mut client));
        // The live context is in the journal, not in the directory.
        assert_eq!(client.append("a", "two"), 2, "{what}");
        match save(&mut client) {
            Ok(path) => assert!(fs::exists(&path).expect("a path"), "{what}: saved to nowhere"),
            refused => _ = expect_error_kind(refused),
        }
        assert_eq!(client.message_texts("a"), ["one", "two"], "{what}");
        assert_eq!(client.get_session("b", "latest").1.len(), 1, "{what}: another agent");
        daemon.assert_alive();
        daemon.terminate();
        let mut daemon = Daemon::start(&home);
        assert_eq!(daemon.client().message_texts("b"), ["one"], "{what}");
        daemon.assert_alive();
    }
}

/// 500 MB in small: what is read must fit, and be given back.
#[test]
fn a_huge_file_that_is_no_session_harms_nobody() {
    const SIZE: u64 = 128 * 1024 * 1024;
    let home = home().without_index();
    let (daemon, _) = two_agents(&home);
    // Most of this is the program itself.
    let usual = process::peak_rss(daemon.pid);
    daemon.terminate();
    let huge = fs::File::create(home.sessions_dir("a").join("2026-01-01_huge.json")).expect("a file");
    huge.set_len(SIZE).expect("a hole");
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let corrupt = wait_until("it to be listed as corrupt", DEADLINE, || {
        client.history("a").into_iter().find(|session| session.corrupt.is_some())
    });
    assert_eq!(corrupt.header.session_id, "2026-01-01_huge");
    assert_eq!(client.message_texts("b"), ["one"]);
    let peak = process::peak_rss(daemon.pid);
    assert!(peak < usual + SIZE + SIZE / 4, "{peak} bytes instead of {usual} for a file of {SIZE}");
    wait_until("the memory to be given back", DEADLINE, || {
        (process::anonymous_memory(daemon.pid) < SIZE / 2).then_some(())
    });
    daemon.assert_alive();
}

#[test]
fn session_files_that_are_no_files_are_left_alone() {
    let home = home();
    let (daemon, _) = two_agents(&home);
    daemon.terminate();
    let sessions = home.sessions_dir("a");
    let fifo = sessions.join("2026-01-01_fifo.json");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    std::os::unix::fs::symlink("/etc/passwd", sessions.join("2026-01-01_link.json")).expect("a link");
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("a", "two");
    save(&mut client).expect("saved beside them");
    assert!(client.history("a").iter().all(|session| session.corrupt.is_some() || session.available));
    // A pipe that nobody writes to must not hold anybody up, whoever names it.
    let named = RestoreParams { agent: Some("a".into()), session: "2026-01-01_fifo".into(), ..Default::default() };
    _ = expect_error_kind(client.call::<Restore>(&named));
    daemon.assert_alive();
    assert!(daemon.terminate().success());
}
