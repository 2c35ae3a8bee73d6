//! A daemon that does not answer, or goes away before it does.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use chorus_tests::ctl::chorusctl;
use chorus_tests::process::{signal, wait_for_exit};
use chorus_tests::{DEADLINE, Home};
use rustix::process::Signal;

use crate::home;

/// Listens where the daemon would, and hands over each connection together with the request it brought.
fn deaf(home: &Home) -> Receiver<(UnixStream, Vec<u8>)> {
    fs::create_dir_all(home.socket().parent().expect("a directory")).expect("run/");
    let listener = UnixListener::bind(home.socket()).expect("a socket");
    let (tell, told) = sync_channel(16);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut header = [0; 4];
            if stream.read_exact(&mut header).is_err() {
                continue;
            }
            let mut request = vec![0; u32::from_be_bytes(header) as usize];
            stream.read_exact(&mut request).expect("a whole request");
            if tell.send((stream, request)).is_err() {
                return;
            }
        }
    });
    told
}

#[test]
fn a_wait_can_be_limited() {
    let home = home();
    let _requests = deaf(&home);
    let begun = Instant::now();
    chorusctl(&home, ["--timeout", "300ms", "status"]).expect_failure_with_hint(1);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(250), "{waited:?}");
}

#[test]
fn an_interrupt_ends_any_wait() {
    let home = home();
    let requests = deaf(&home);
    let commands: [&[&str]; 14] = [
        &["status"],
        &["agent", "init", "a"],
        &["agent", "list"],
        &["agent", "show", "a"],
        &["agent", "use", "a"],
        &["agent", "config", "a"],
        &["agent", "destroy", "a", "--yes"],
        &["context", "append", "one"],
        &["context", "show"],
        &["context", "save"],
        &["context", "clear", "--yes"],
        &["context", "history"],
        &["context", "restore", "latest"],
        &["session", "show", "latest"],
    ];
    for args in commands {
        let mut command = home.command(home.bins.chorusctl);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("chorusctl starts");
        let _asked = requests.recv_timeout(DEADLINE).expect("its request");
        signal(child.id(), Signal::INT);
        let status = wait_for_exit(&mut child, "an interrupted command");
        assert_eq!(status.signal(), Some(2), "{args:?}: {status}");
    }
}

#[test]
fn what_was_sent_is_never_sent_again() {
    let home = home();
    let requests = deaf(&home);
    let closing = std::thread::spawn(move || {
        let (stream, request) = requests.recv_timeout(DEADLINE).expect("a request");
        drop(stream);
        let again = requests.recv_timeout(Duration::from_millis(500));
        (request, again.is_ok())
    });
    chorusctl(&home, ["--agent", "a", "context", "append", "once"]).expect_failure_with_hint(1);
    let (request, again) = closing.join().expect("the daemon");
    assert!(String::from_utf8_lossy(&request).contains("context.append"));
    assert!(!again, "it was sent a second time");
}
