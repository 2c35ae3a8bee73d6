//! P12: one daemon per home.

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Stdio};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::{kill, wait_for_exit};
use chorus_tests::rng::rounds_from_env;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;

const STARTS: usize = 50;

/// Starts `STARTS` daemons at once and gives the one that stays, after all others have ended as they should.
fn race(home: &Home) -> Child {
    let start = || {
        let log = File::options().create(true).append(true).open(home.temp_dir().join("race.err")).expect("a log");
        let mut command = home.command(home.bins.chorusd);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("chorusd starts")
    };
    let mut running: Vec<Child> = (0..STARTS).map(|_| start()).collect();
    let mut ended = Vec::new();
    wait_until("all starts but one to end", DEADLINE * 3, || {
        running.retain_mut(|child| match child.try_wait().expect("a child to ask") {
            Some(status) => {
                ended.push((status, child.stdout.take()));
                false
            }
            None => true,
        });
        (running.len() <= 1).then_some(())
    });
    for (status, stdout) in ended {
        let mut said = String::new();
        stdout.expect("a pipe").read_to_string(&mut said).expect("its output");
        assert_eq!((status.code(), said.contains("ready")), (Some(7), false), "{status}: {said}");
    }
    running.pop().expect("one winner")
}

#[test]
fn of_fifty_starts_at_once_exactly_one_wins() {
    for _ in 0..rounds_from_env("CHORUS_RACE_ROUNDS", 3) {
        let home = home();
        let mut winner = race(&home);
        let pid = wait_until("the winner to answer", DEADLINE, || home.running_pid());
        assert_eq!(pid, winner.id());
        kill(pid);
        wait_for_exit(&mut winner, "the winner");
    }
}

#[test]
fn nothing_that_a_killed_one_leaves_keeps_the_next_from_starting() {
    let home = home();
    for start in 0..5 {
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        if start == 0 {
            client.init("a");
        }
        assert_eq!(client.message_texts("a").len(), start);
        client.append("a", "once more");
        daemon.kill9();
        assert!(home.socket().exists(), "a killed one leaves its socket");
    }
}
