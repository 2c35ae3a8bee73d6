//! Socket activation: the service manager listens, the daemon answers.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Hello, HelloParams, Status, StatusParams};
use chorus_tests::{DEADLINE, Home, ctl, process};
use rustix::process::Signal;

use crate::home;

/// `chorusd` with `socket` as descriptor 3, as a service manager starts it.
fn activated(home: &Home, socket: impl Into<OwnedFd>, count: &str) -> Command {
    let script = format!("exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS={count} exec \"$0\"");
    let mut command = home.command("sh");
    command.args(["-c", &script, home.bins.chorusd]).stdin(Stdio::from(socket.into()));
    command
}

#[test]
fn clients_may_come_before_the_daemon_and_the_socket_outlives_it() {
    let home = home();
    home.create();
    let path = home.temp_dir().join("activated.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let command = || activated(&home, listener.try_clone().expect("the same socket"), "1");
    // Not accepted yet, and nobody there to do it.
    let mut early = Client::connect(&path).expect("the manager listens");
    early.set_timeout(Some(DEADLINE)).expect("a time-out");
    for _ in 0..2 {
        let mut child = command().spawn().expect("chorusd starts");
        let hello = early.call::<Hello>(&HelloParams::default()).expect("an answer");
        assert_eq!(hello.pid, child.id());
        let status = early.call::<Status>(&StatusParams::default()).expect("an answer");
        assert_eq!(status.daemon.socket, path.to_str().expect("UTF-8"));
        assert!(!home.socket().exists(), "it made one of its own");
        process::signal(child.id(), Signal::TERM);
        assert_eq!(process::wait_for_exit(&mut child, "chorusd").code(), Some(0));
        assert!(path.exists(), "the manager's socket was removed");
        early = Client::connect(&path).expect("the manager still listens");
        early.set_timeout(Some(DEADLINE)).expect("a time-out");
    }
}

#[test]
fn what_is_no_listening_unix_socket_is_refused_before_anything_is_made() {
    let home = home();
    let refused = |socket: OwnedFd, count: &str, word: &str| {
        let mut command = activated(&home, socket, count);
        let output = command.output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.contains("hint: "), "{said}");
        assert!(!home.path.exists(), "something was made");
    };
    let listening = || UnixListener::bind(tempfile_name(&home)).expect("a socket").into();
    refused(TcpListener::bind("127.0.0.1:0").expect("a socket").into(), "1", "Unix socket");
    refused(std::fs::File::open("/dev/null").expect("a file").into(), "1", "not a socket");
    refused(listening(), "many", "LISTEN_FDS");
}

/// Variables that were meant for another process are none of ours.
#[test]
fn descriptors_of_another_process_are_left_alone() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env("LISTEN_PID", std::process::id().to_string()).env("LISTEN_FDS", "1").arg("status");
    ctl::run_command(command, b"").expect_success();
    assert!(home.socket().exists());
}

fn tempfile_name(home: &Home) -> std::path::PathBuf {
    home.temp_dir().join("listening.sock")
}
