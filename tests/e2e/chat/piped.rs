//! A conversation that is piped in.

use chorus_tests::ctl::{chorusctl_with, run_command};
use chorus_tests::{Gate, InteractiveCommand};
use serde_json::json;

use super::{Calls, PROMPT, context, daemon, echoes, plain, replies, started, text, texts};
use crate::home;

#[test]
fn each_line_is_a_message() {
    let home = home();
    let calls = echoes(&home);
    let said = chorusctl_with(&home, ["--agent", "atlas", "chat"], "one\n\n/help me \\\r\n two".as_bytes());
    assert_eq!(texts(&calls), ["one", "/help me \\", " two"]);
    assert_eq!(said.stdout, "heard \"one\"\nheard \"/help me \\\\\"\nheard \" two\"\n");
    assert_eq!((said.status, &*said.stderr), (0, "atlas · new conversation\n"));
    for sent in calls.of("send") {
        assert_eq!(sent["agent"], "atlas", "it goes on with the agent it began with");
    }
    let said = chorusctl_with(&home, ["--agent", "atlas", "--json", "--quiet", "chat"], b"one\ntwo\n");
    assert_eq!((said.stdout.lines().count(), &*said.stderr), (2, ""));
    assert!(said.stdout.lines().all(|line| line.starts_with('{')), "{}", said.stdout);
}

#[test]
fn a_message_is_answered_before_the_next_is_written() {
    let home = home();
    echoes(&home);
    let mut running = InteractiveCommand::piped(plain(&home));
    for word in ["one", "two"] {
        running.type_text(&format!("{word}\n"));
        running.stdout.wait_for(&format!("heard {word:?}\n"));
    }
    running.close_input();
    assert_eq!(running.wait_for_exit().0.code(), Some(0));
}

#[test]
fn the_first_that_fails_ends_it() {
    let home = home();
    let refuses =
        |mut asked: super::FakeRequest<'_>| asked.send_error("limit_reached", "it is enough for today", "wait");
    let calls = daemon(&home, refuses, |mut asked| asked.send_result(context(0, 0, &[])));
    let said = run_command(plain(&home), b"one\ntwo\n");
    said.expect_failure_with_hint(6);
    assert_eq!(texts(&calls), ["one"]);
    assert_eq!(run_command(plain(&home), b"\xff\n").status, 2);
}

#[test]
fn ctrl_c_cancels_the_turn_and_ends_it() {
    let (home, cancelled) = (home(), Gate::default());
    let told = cancelled.clone();
    let turn = move |mut asked: super::FakeRequest<'_>| {
        started(&mut asked);
        text(&mut asked, "Half");
        cancelled.wait();
        asked.send_error("interrupted", "the turn was cancelled", "it is kept");
    };
    let calls: Calls = daemon(&home, turn, move |mut asked| match &*asked.method {
        "send.cancel" => {
            asked.send_result(json!({"turn_id": null}));
            told.open();
        }
        _ => asked.send_result(context(0, 0, &[])),
    });
    let mut running = InteractiveCommand::piped(plain(&home));
    running.type_text("one\ntwo\n");
    running.stdout.wait_for("Half");
    running.interrupt();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out), (Some(1), "Half\n"));
    assert!(err.ends_with("cancelled; the partial reply was kept\n"), "{err}");
    assert_eq!(texts(&calls), ["one"]);
    assert!(!out.contains(PROMPT));
}

#[test]
fn a_new_conversation_keeps_the_one_before() {
    let home = home();
    let calls = daemon(
        &home,
        |mut asked| replies(&mut asked, "hello"),
        |mut asked| {
            let cleared = json!({"discarded": 0, "saved": null});
            asked.send_result(if asked.method == "context.clear" { cleared } else { context(0, 0, &[]) });
        },
    );
    assert_eq!(chorusctl_with(&home, ["--agent", "atlas", "chat", "--new"], b"hi\n").expect_success(), "hello\n");
    assert_eq!(calls.of("context.clear"), [json!({"agent": "atlas", "conversation": "@", "save": true})]);
}
