//! A daemon that no socket leads to is stopped by the lock that it holds.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{DEADLINE, Daemon, Home, process, wait_until};

use crate::home;

/// Takes the socket away so that it cannot be bound again.
fn cut_off(home: &Home) {
    fs::remove_file(home.socket()).expect("the socket");
    fs::create_dir(home.socket()).expect("something in its place");
}

#[test]
fn stop_ends_it_in_order() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "kept");
    cut_off(&home);
    let said = chorusctl(&home, ["--no-autostart", "daemon", "status"]);
    assert!(said.expect_failure_with_hint(4).contains(&format!("another daemon (pid {})", daemon.pid)), "{said:?}");
    let said = chorusctl(&home, ["--json", "daemon", "stop"]).expect_json();
    assert_eq!(said["pid"], daemon.pid);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.read_log());
    assert!(daemon.read_log().contains("contexts saved"), "an orderly stop: {}", daemon.read_log());
    chorusctl(&home, ["daemon", "stop"]).expect_failure_with_hint(4);
}

#[test]
fn restart_works_right_after_the_socket_was_lost() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    fs::remove_dir_all(home.path.join("run")).expect("run/");
    chorusctl(&home, ["daemon", "restart"]).expect_success();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.read_log());
    let now = wait_until("the new one", DEADLINE, || home.running_pid());
    assert_ne!(now, daemon.pid);
}

/// The pid in a lock file that nobody holds is only a number: whoever has it now is left alone.
#[test]
fn a_process_that_does_not_hold_the_lock_is_left_alone() {
    let home = home();
    home.create();
    fs::create_dir(home.path.join("run")).expect("run/");
    let mut bystander = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
    let lock = home.path.join("run/chorusd.lock");
    fs::write(&lock, format!("{}\n{}\n", bystander.id(), home.socket().display())).expect("a lock file");
    chorusctl(&home, ["daemon", "stop"]).expect_failure_with_hint(4);
    // Held, but by us.
    let held = File::open(&home.path).expect("the home");
    held.lock().expect("its lock");
    let said = chorusctl(&home, ["daemon", "stop"]);
    assert!(said.expect_failure(1).contains("cannot confirm that process"), "{said:?}");
    assert!(bystander.try_wait().expect("a child to ask").is_none(), "it was ended");
    process::kill(bystander.id());
    process::wait_for_exit(&mut bystander, "sleep");
}

#[test]
fn a_socket_that_was_named_is_not_left_for_another_and_the_hint_leads_out() {
    let home = home();
    let daemon = Daemon::start(&home);
    let ctl = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("CHORUS_SOCKET", home.temp_dir().join("nobody.sock")).args(args);
        run_command(command, b"")
    };
    let said = ctl(&["--no-autostart", "status"]);
    let (pid, socket) = (format!("another daemon (pid {})", daemon.pid), home.socket().display().to_string());
    let said = said.expect_failure_with_hint(4);
    assert!(said.contains(&pid) && said.contains(&format!("hint: use that socket: --socket {socket}")), "{said}");
    // The same by the daemon that would be started.
    let said = ctl(&["status"]);
    let said = said.expect_failure_with_hint(7);
    assert!(said.contains(&pid) && said.contains(&format!("chorusctl --socket {socket} daemon stop")), "{said}");
    ctl(&["daemon", "stop"]).expect_failure_with_hint(4);
    assert_eq!(home.running_pid(), Some(daemon.pid));
    ctl(&["--socket", &socket, "daemon", "stop"]).expect_success();
}
