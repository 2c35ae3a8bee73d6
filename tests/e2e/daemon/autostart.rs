//! The daemon that a command starts where none runs.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;

use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::process::kill;
use chorus_tests::{DEADLINE, Home, wait_until};

use crate::home;

fn gone(home: &Home, pid: u32) {
    kill(pid);
    wait_until("the daemon to be gone", DEADLINE, || home.running_pid().is_none().then_some(()));
}

#[test]
fn the_first_command_starts_a_daemon_that_stays() {
    let home = home();
    let said = chorusctl(&home, ["--json", "agent", "init", "a"]).expect_json();
    assert_eq!(said["agent"]["name"], "a");
    let pid = home.running_pid().expect("it stays");
    chorusctl(&home, ["context", "append", "one"]).expect_success();
    assert_eq!(home.running_pid(), Some(pid), "the same one");
    gone(&home, pid);
    let shown = chorusctl(&home, ["--json", "context", "show"]).expect_json();
    assert_eq!(shown["messages"][0]["content"], "one");
}

#[test]
fn it_can_be_forbidden() {
    let home = home();
    chorusctl(&home, ["--no-autostart", "agent", "list"]).expect_failure_with_hint(4);
    assert_eq!(home.running_pid(), None);
    assert!(!home.path.join("db").exists());
}

#[test]
fn several_commands_at_once_start_one() {
    let home = home();
    let statuses: Vec<i32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| chorusctl(&home, ["agent", "list"]).status)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a command")).collect()
    });
    assert_eq!(statuses, [0; 8]);
    let pid = home.running_pid().expect("a daemon");
    gone(&home, pid);
}

/// After a `kill -9`, the lock is free only once the process is gone.
#[test]
fn a_daemon_that_is_just_ending_is_waited_for() {
    let home = home();
    home.create();
    let ending = File::open(&home.path).expect("the home");
    ending.lock().expect("its lock");
    let runs = home.temp_dir().join("runs");
    let program = home.temp_dir().join("chorusd");
    let real = home.command(home.bins.chorusd);
    let real = real.get_program().to_str().expect("a path");
    let script = format!("#!/bin/sh\n{real} \"$@\"\nstatus=$?\necho $status >> {}\nexit $status\n", runs.display());
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("permissions");
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSD", &program).args(["context", "append", "one"]);
    let output = std::thread::scope(|scope| {
        let appended = scope.spawn(|| run_command(command, b""));
        let is_refused = || fs::read_to_string(&runs).is_ok_and(|text| !text.is_empty());
        wait_until("a daemon to find the lock", DEADLINE, || is_refused().then_some(()));
        drop(ending);
        appended.join().expect("a command")
    });
    assert_eq!((output.status, &*output.stdout), (0, "appended 1 message (1 total)\n"), "{output:?}");
    gone(&home, home.running_pid().expect("a daemon"));
}

#[test]
fn a_daemon_that_cannot_start_is_a_clear_failure() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSD", home.temp_dir().join("nothing-here")).arg("status");
    run_command(command, b"").expect_failure_with_hint(4);
    home.write_config("max_conections = 3\n");
    let said = chorusctl(&home, ["status"]);
    assert!(said.expect_failure(4).contains("max_conections"), "it says why: {}", said.stderr);
}

#[test]
fn commands_that_only_look_start_nothing() {
    let home = home();
    let said = chorusctl(&home, ["daemon", "status"]);
    assert_eq!(said.status, 4, "{said:?}");
    assert_eq!(home.running_pid(), None);
}
