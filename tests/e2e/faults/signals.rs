//! Signals that come while the daemon stops, and while it starts.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::signal;
use chorus_tests::{DEADLINE, Daemon, RawConnection, wait_until};
use rustix::process::Signal;

use crate::home;

/// A client that takes no answer holds up a stop for a moment.
fn deaf(daemon: &Daemon) -> RawConnection {
    let mut deaf = daemon.raw_connection();
    deaf.send_until_blocked(r#"{"jsonrpc":"2.0","id":1,"method":"context.show","params":{"agent":"a"}}"#, 1000);
    deaf
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_journal_has_what_was_not_saved() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &"x".repeat(1024 * 1024));
    let _deaf = deaf(&daemon);
    signal(daemon.pid, Signal::TERM);
    wait_until("the stop to begin", DEADLINE, || daemon.read_log().contains("stopping").then_some(()));
    signal(daemon.pid, Signal::TERM);
    let status = daemon.wait();
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    assert!(!daemon.read_log().contains("panicked"), "{}", daemon.read_log());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a").len(), 1);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1, "saved at the next stop");
}

#[test]
fn signals_one_after_the_other_lose_nothing() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    for n in 0..5 {
        daemon.client().append("a", &n.to_string());
        for _ in 0..=n {
            signal(daemon.pid, Signal::TERM);
        }
        daemon.wait();
        daemon = Daemon::start(&home);
        assert_eq!(daemon.client().message_texts("a").len(), n + 1);
    }
}
