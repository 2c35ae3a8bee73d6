//! Ctrl-C while a turn runs.

use std::os::unix::process::ExitStatusExt as _;

use chorus_tests::{Gate, Home, InteractiveCommand};
use serde_json::json;

use super::{Calls, TURN, command, daemon, replies, started, talks, text};
use crate::home;

/// The model had written nothing.
const CANCELLED: &str = "error: cancelled\n";
const KEPT: &str = "error: cancelled; the partial reply was kept\n";

fn interrupted(asked: &mut super::FakeRequest<'_>) {
    asked.send_error("interrupted", "the turn was cancelled", "what came is kept");
}

/// A daemon whose turn says a half and ends when it is cancelled.
fn cancellable(home: &Home) -> Calls {
    let cancelled = Gate::default();
    let told = cancelled.clone();
    daemon(
        home,
        move |mut asked| {
            started(&mut asked);
            text(&mut asked, "Half");
            cancelled.wait();
            interrupted(&mut asked);
        },
        move |mut asked| {
            asked.send_result(json!({"turn_id": TURN}));
            told.open();
        },
    )
}

#[test]
fn it_cancels_the_turn_by_its_id() {
    let home = home();
    let calls = cancellable(&home);
    let mut running = InteractiveCommand::piped(command(&home, &["--agent", "atlas", "send", "go on"]));
    running.stdout.wait_for("Half");
    running.interrupt();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out, &*err), (Some(1), "Half\n", KEPT));
    assert_eq!(calls.of("send.cancel"), [json!({"agent": "atlas", "conversation": "@", "turn_id": TURN})]);
}

#[test]
fn a_second_one_leaves_at_once() {
    let (home, asked_to) = (home(), Gate::default());
    let told = asked_to.clone();
    daemon(
        &home,
        |mut asked| {
            started(&mut asked);
            text(&mut asked, "Half");
            asked.wait_for_disconnect();
        },
        move |asked| {
            told.open();
            asked.wait_for_disconnect();
        },
    );
    let mut running = InteractiveCommand::piped(command(&home, &["send", "go on"]));
    running.stdout.wait_for("Half");
    running.interrupt();
    asked_to.wait();
    running.interrupt();
    let (status, out, _) = running.wait_for_exit();
    assert_eq!((status.signal(), &*out), (Some(2), "Half"));
}

#[test]
fn a_turn_that_waits_without_an_id_is_cancelled_when_it_begins() {
    let (home, begin, cancelled) = (home(), Gate::default(), Gate::default());
    let (begins, told) = (begin.clone(), cancelled.clone());
    let calls = daemon(
        &home,
        move |mut asked| {
            asked.send_progress(json!({"queued": {"before": 1}}));
            begins.wait();
            started(&mut asked);
            cancelled.wait();
            interrupted(&mut asked);
        },
        move |mut asked| {
            asked.send_result(json!({"turn_id": TURN}));
            told.open();
        },
    );
    let mut running = InteractiveCommand::piped(command(&home, &["send", "go on"]));
    running.stderr.wait_for("waiting for 1 earlier message");
    running.interrupt();
    running.stderr.wait_for("cancelling when it starts");
    assert!(calls.of("send.cancel").is_empty(), "it has no id yet");
    begin.open();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out), (Some(1), ""));
    assert!(err.ends_with(CANCELLED), "{err}");
}

#[test]
fn a_message_that_waits_is_taken_back_at_once() {
    let (home, taken_back) = (home(), Gate::default());
    let told = taken_back.clone();
    let calls = daemon(
        &home,
        move |mut asked| {
            asked.send_progress(json!({"queued": {"before": 1, "turn_id": TURN}}));
            taken_back.wait();
            asked.send_error("interrupted", "the message was taken back", "it was not added to the conversation");
        },
        move |mut asked| {
            asked.send_result(json!({"turn_id": TURN}));
            told.open();
        },
    );
    let mut running = InteractiveCommand::piped(command(&home, &["send", "go on"]));
    running.stderr.wait_for("waiting for 1 earlier message");
    running.interrupt();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out), (Some(1), ""));
    assert!(err.ends_with("error: cancelled before it started; the message was not kept\n"), "{err}");
    assert_eq!(calls.of("send.cancel"), [json!({"conversation": "@", "turn_id": TURN})]);
}

#[test]
fn a_message_that_began_before_it_could_be_taken_back_is_cancelled() {
    let (home, cancelled) = (home(), Gate::default());
    let told = cancelled.clone();
    let calls = daemon(
        &home,
        move |mut asked| {
            asked.send_progress(json!({"queued": {"before": 1, "turn_id": TURN}}));
            cancelled.wait();
            started(&mut asked);
            interrupted(&mut asked);
        },
        move |mut asked| {
            asked.send_result(json!({"turn_id": TURN}));
            told.open();
        },
    );
    let mut running = InteractiveCommand::piped(command(&home, &["send", "go on"]));
    running.stderr.wait_for("waiting for 1 earlier message");
    running.interrupt();
    let (_, _, err) = running.wait_for_exit();
    assert!(err.ends_with(CANCELLED), "{err}");
    assert_eq!(calls.of("send.cancel").len(), 1, "it is asked once");
}

#[test]
fn a_reply_that_was_faster_is_a_reply() {
    let (home, cancelled) = (home(), Gate::default());
    let told = cancelled.clone();
    daemon(
        &home,
        move |mut asked| {
            started(&mut asked);
            text(&mut asked, "All");
            cancelled.wait();
            replies(&mut asked, "All");
        },
        move |mut asked| {
            asked.send_result(json!({"turn_id": null}));
            told.open();
        },
    );
    let mut running = InteractiveCommand::piped(command(&home, &["send", "go on"]));
    running.stdout.wait_for("All");
    running.interrupt();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out, &*err), (Some(0), "All\n", ""));
}

#[test]
fn ctrl_c_at_a_terminal_is_the_same() {
    let home = home();
    cancellable(&home);
    let mut running = InteractiveCommand::on_terminal(&command(&home, &["send", "go on"]));
    running.stdout.wait_for("Half");
    running.type_text("\u{3}");
    let (status, out, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(1), "{out}");
    assert!(out.contains("cancelled; the partial reply was kept"), "{out}");
}

/// `chorusctl send … &` in a script.
#[test]
fn where_the_shell_ignores_it_the_turn_goes_on() {
    let (home, go_on) = (home(), Gate::default());
    let goes = go_on.clone();
    let calls = talks(&home, move |mut asked| {
        started(&mut asked);
        text(&mut asked, "Half");
        goes.wait();
        text(&mut asked, " and half");
        replies(&mut asked, "Half and half");
    });
    let mut shell = home.command("sh");
    shell.args(["-c", r#"trap "" INT; exec "$0" send "go on""#, home.bins.chorusctl]);
    let mut running = InteractiveCommand::piped(shell);
    running.stdout.wait_for("Half");
    running.interrupt();
    go_on.open();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out, &*err), (Some(0), "Half and half\n", ""));
    assert!(calls.of("send.cancel").is_empty());
}
