//! A daemon that takes connections and does not answer.

use std::time::{Duration, Instant};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, process};
use rustix::process::Signal;

use crate::home;

#[test]
fn whoever_looks_at_it_is_told_its_process_and_what_to_do() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    process::signal(daemon.pid, Signal::STOP);
    let begun = Instant::now();
    let commands: [&[&str]; 4] = [&["status"], &["daemon", "status"], &["doctor"], &["daemon", "stop"]];
    std::thread::scope(|scope| {
        for args in commands {
            let home = &home;
            let pid = daemon.pid;
            scope.spawn(move || {
                let output = chorusctl(home, args);
                let error = output.expect_failure_with_hint(1);
                assert!(error.contains(&format!("chorusd, pid {pid}, has not answered for 10s")), "{args:?}: {error}");
                assert!(error.contains(&format!("kill -CONT {pid}")), "{args:?}: {error}");
            });
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    process::signal(daemon.pid, Signal::CONT);
    // The stop that nobody waited for is carried out.
    assert_eq!(daemon.wait().code(), Some(0));
}
