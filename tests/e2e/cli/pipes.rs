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

/// A full disk, for example.
#[test]
fn output_that_cannot_be_written_is_a_failure_that_says_what_was_done() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    let write_to_full = |args: &[&str], stdin: &[u8]| {
        let mut command = home.command("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >/dev/full", home.bins.chorusctl]).args(args);
        let output = run_command(command, stdin);
        (output.status, output.stderr)
    };
    let failure = |done: &str| (1, format!("error: {done}failed to write the output: no space left on device\n"));
    assert_eq!(write_to_full(&["context", "append", "hi"], b""), failure("the message was appended, but chorusctl "));
    let lines = b"{\"content\":\"a\"}\n{\"content\":\"b\"}\n";
    let appended = write_to_full(&["context", "append", "--jsonl"], lines);
    assert_eq!(appended, failure("the messages were appended, but chorusctl "));
    assert_eq!(write_to_full(&["save", "three"], b""), failure("the conversation was saved, but chorusctl "));
    assert_eq!(chorusctl(&home, ["show", "--json"]).expect_json()["messages"].as_array().map(Vec::len), Some(3));
    for args in [&["show"][..], &["history"], &["--help"], &["--version"], &["save", "--help"], &["help", "save"]] {
        assert_eq!(write_to_full(args, b""), failure(""), "{args:?}");
    }
    for option in ["--help", "--version"] {
        let mut daemon = home.command("sh");
        daemon.args(["-c", "exec \"$0\" \"$@\" >/dev/full", home.bins.chorusd, option]);
        let output = run_command(daemon, b"");
        assert!(output.expect_failure(1).starts_with("error: failed to write the output: "), "{output:?}");
    }
    let (status, told) = write_to_full(&["--json", "context", "append", "hi"], b"");
    assert!(status == 1 && told.contains("\"message\":\"the message was appended, but "), "{told}");
}
