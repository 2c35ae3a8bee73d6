//! An orderly stop saves everything and ends.

use chorus_proto::Trigger;
use chorus_proto::methods::daemon::{Stop, StopParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::process::signal;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use rustix::process::Signal;

use crate::home;

const AGENTS: usize = 10;

#[test]
fn a_signal_saves_every_unsaved_context() {
    for what in [Signal::TERM, Signal::INT] {
        let home = home();
        let mut daemon = Daemon::start(&home);
        let mut client = daemon.client();
        for n in 0..AGENTS {
            client.init(&format!("agent-{n}"));
            client.append(&format!("agent-{n}"), &format!("unsaved {n}"));
        }
        client.save("agent-0", "saved already");
        signal(daemon.pid, what);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.read_log());
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        for n in 0..AGENTS {
            let agent = format!("agent-{n}");
            let sessions = client.history(&agent);
            assert_eq!(sessions.len(), 1, "{agent}");
            let trigger = if n == 0 { Trigger::ManualSave } else { Trigger::Shutdown };
            assert_eq!(sessions[0].header.trigger, trigger);
            assert_eq!(client.message_texts(&agent), [format!("unsaved {n}")], "live again, as it was");
        }
    }
}

#[test]
fn a_context_that_was_saved_at_the_stop_is_not_unsaved_afterwards() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    daemon.terminate();
    let daemon = Daemon::start(&home);
    daemon.terminate();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1, "each stop saved it again");
}

#[test]
fn what_a_stop_does_not_come_to_save_the_next_start_saves() {
    let home = home();
    let mut daemon = Daemon::start_with(&home, "stop_timeout = \"1ms\"\n");
    let mut client = daemon.client();
    client.init("a");
    // So much that a millisecond is not enough.
    client.append("a", &"word ".repeat(400_000));
    signal(daemon.pid, Signal::TERM);
    daemon.wait();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until("the save", DEADLINE, || (client.agent_status("a").context?.unsaved == 0).then_some(()));
    let sessions = client.history("a");
    assert_eq!((sessions.len(), sessions[0].header.trigger), (1, Trigger::Shutdown));
    // A crash is no stop: what is unsaved stays so.
    client.append("a", "two");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 1);
    assert_eq!(client.message_texts("a").len(), 2);
}

#[test]
fn without_resume_on_start_agents_start_idle() {
    let home = home();
    let daemon = Daemon::start_with(&home, "resume_on_start = false\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    daemon.terminate();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
    assert_eq!(client.history("a").len(), 1);
    client.append("a", "two");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
    let mut kept: Vec<_> =
        client.history("a").iter().map(|s| client.get_session("a", &s.short_id).1[0].content.clone()).collect();
    kept.sort();
    assert_eq!(kept, ["one", "two"], "what a crash left live is in a session");
}

#[test]
fn a_stop_can_be_asked_for() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let stopped = client.call::<Stop>(&StopParams {}).expect("an answer before the end");
    assert_eq!(stopped.pid, daemon.pid);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!home.socket().exists());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1);
}

#[test]
fn idle_and_half_done_connections_do_not_hold_up_a_stop() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let _quiet = daemon.raw_connection();
    let mut half = daemon.raw_connection();
    half.send_bytes(&100_u32.to_be_bytes());
    let mut deaf = daemon.raw_connection();
    daemon.client().init("a");
    daemon.client().append("a", &"x".repeat(1024 * 1024));
    deaf.send_until_blocked(r#"{"jsonrpc":"2.0","id":1,"method":"context.show","params":{"agent":"a"}}"#, 1000);
    let begun = std::time::Instant::now();
    signal(daemon.pid, Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    let saved = std::fs::read_dir(home.sessions_dir("a")).expect("sessions/").count();
    assert_eq!(saved, 1, "the context was not saved: {}", daemon.read_log());
}

#[test]
fn appends_during_a_stop_are_kept_or_refused() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    let acked: u64 = std::thread::scope(|scope| {
        let appending = |_| {
            let mut client = daemon.client();
            scope.spawn(move || {
                let mut acked = 0;
                let params = chorus_proto::methods::context::AppendParams {
                    agent: Some("a".into()),
                    text: Some("x".into()),
                    ..Default::default()
                };
                while client.call::<chorus_proto::methods::context::Append>(&params).is_ok() {
                    acked += 1;
                }
                acked
            })
        };
        let threads: Vec<_> = (0..4).map(appending).collect();
        let mut client = daemon.client();
        wait_until("some appends", DEADLINE, || (client.message_texts("a").len() > 50).then_some(()));
        signal(daemon.pid, Signal::TERM);
        threads.into_iter().map(|thread| thread.join().expect("a client")).sum()
    });
    assert_eq!(daemon.wait().code(), Some(0));
    let daemon = Daemon::start(&home);
    let there = daemon.client().message_texts("a").len() as u64;
    // One request of each client may have been carried out without its answer.
    assert!((acked..=acked + 4).contains(&there), "{acked} were acknowledged, {there} are there");
}

#[test]
fn the_command_line_stops_starts_and_restarts() {
    let home = home();
    let daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    chorusctl(&home, ["context", "append", "one"]).expect_success();
    let first = daemon.pid;
    chorusctl(&home, ["daemon", "stop"]).expect_success();
    assert_eq!(home.running_pid(), None);
    drop(daemon);
    let again = chorusctl(&home, ["daemon", "stop"]);
    assert_eq!(again.status, 4, "{again:?}");
    chorusctl(&home, ["daemon", "start"]).expect_success();
    let second = home.running_pid().expect("a daemon");
    assert_ne!(first, second);
    chorusctl(&home, ["daemon", "restart"]).expect_success();
    let third = home.running_pid().expect("a daemon");
    assert_ne!(second, third);
    let status = chorusctl(&home, ["--json", "daemon", "status"]);
    assert!(status.expect_success().contains(&third.to_string()));
    let shown = chorusctl(&home, ["--json", "context", "show"]).expect_json();
    assert_eq!(shown["messages"][0]["content"], "one");
    let logs = chorusctl(&home, ["daemon", "logs"]).expect_success();
    assert!(!logs.is_empty());
}

#[test]
fn a_daemon_that_was_killed_is_named_by_the_status() {
    let home = home();
    let daemon = Daemon::start(&home);
    let pid = daemon.pid;
    daemon.kill9();
    let status = chorusctl(&home, ["daemon", "status"]);
    let expected = format!("; the last one (pid {pid}) was killed or crashed\nhint: chorusctl daemon start");
    assert!(status.expect_failure(4).contains(&expected), "{status:?}");
    let daemon = Daemon::start(&home);
    assert!(daemon.terminate().success());
    let status = chorusctl(&home, ["daemon", "status"]);
    assert!(!status.expect_failure(4).contains("the last one"), "{status:?}");
}
