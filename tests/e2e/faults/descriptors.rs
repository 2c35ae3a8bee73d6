//! No file descriptor is free: connections wait, programs cannot be started, and all of it passes.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;

const LIMIT: u32 = 64;

fn limited(home: &Home) -> Daemon {
    let mut command = home.command("sh");
    command.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$0\""), home.bins.chorusd]);
    Daemon::start_command(home, command)
}

/// Connections until the daemon has taken as many as it can.
fn exhaust(home: &Home, daemon: &Daemon) -> Vec<UnixStream> {
    let connect = || UnixStream::connect(home.socket()).expect("the socket queues it");
    let all = (0..LIMIT).map(|_| connect()).collect();
    wait_until("the daemon to have no descriptor left", DEADLINE, || {
        daemon.read_log().contains("cannot accept a connection").then_some(())
    });
    all
}

#[test]
fn connections_that_cannot_be_accepted_wait_until_they_can() {
    let home = home();
    let mut daemon = limited(&home);
    let mut before = daemon.client();
    before.init("a");
    let all = exhaust(&home, &daemon);
    before.append("a", "who is in goes on");
    let mut waiting = daemon.client();
    drop(all);
    waiting.set_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    waiting.append("a", "who waited is served");
    assert_eq!(before.message_texts("a").len(), 2);
    daemon.assert_alive();
}

#[test]
fn a_program_that_cannot_be_started_is_a_clear_error_and_leaves_nothing() {
    let home = home();
    let daemon = limited(&home);
    let mut client = daemon.client();
    client.init("a");
    let all = exhaust(&home, &daemon);
    let init = InitParams { name: "b".into(), ..Default::default() };
    let kind = expect_error_kind(client.call::<Init>(&init));
    assert_eq!(kind, ErrorKind::StorageFailed);
    drop(all);
    wait_until("an init to work again", DEADLINE, || client.call::<Init>(&init).ok());
    let names: Vec<_> = std::fs::read_dir(home.path.join("agents")).expect("agents/").collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
