//! What a command does when it is one part of a pipe.

use std::io::Read as _;
use std::process::Stdio;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::process::wait_for_exit;

use crate::home;

/// `chorusctl … | head`.
#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for n in 0..200 {
        client.append("a", &format!("{n} {}", "many words ".repeat(200)));
    }
    for args in [&["context", "show"][..], &["--json", "context", "show"], &["status"], &["--help"]] {
        for read in [1, 0] {
            let mut command = home.command(home.bins.chorusctl);
            command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("chorusctl starts");
            let mut stdout = child.stdout.take().expect("a pipe");
            stdout.read_exact(&mut vec![0; read]).expect("the beginning");
            drop(stdout);
            let status = wait_for_exit(&mut child, "chorusctl");
            let mut said = String::new();
            child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
            assert!(!said.contains("panicked") && !said.contains("error: "), "{args:?}: {said}");
            // It has either written everything before the reader went away, or is ended by SIGPIPE.
            assert!(status.code() == Some(0) || status.code().is_none(), "{args:?}: {status}");
        }
    }
    client.append("a", "still there");
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    let mut plain = home.command(home.bins.chorusctl);
    plain.env_remove("NO_COLOR").args(["status"]);
    assert!(!run_command(plain, b"").expect_success().contains('\u{1b}'));
    let mut asked = home.command(home.bins.chorusctl);
    asked.env_remove("NO_COLOR").args(["--color", "always", "status"]);
    assert!(run_command(asked, b"").expect_success().contains('\u{1b}'));
    for args in [&["status"][..], &["context", "history"], &["agent", "list"]] {
        assert!(!chorusctl(&home, args.iter().copied()).expect_success().contains('\u{1b}'));
    }
}

#[test]
fn quiet_says_only_what_was_asked_for() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    for args in [&["--quiet", "context", "append", "one"][..], &["--quiet", "context", "save"]] {
        assert_eq!(chorusctl(&home, args.iter().copied()).stderr, "");
    }
}
