//! A conversation at a real terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use chorus_tests::{Gate, InteractiveCommand};
use serde_json::json;

use super::{
    FakeRequest, PROMPT, at_prompt, chat, context, daemon, echo, echoes, leave, plain, say, started, text, texts,
};
use crate::home;

#[test]
fn it_goes_on_with_the_live_context_and_says_so() {
    let home = home();
    let last = [("user", "Why does the import drop rows?"), ("assistant", "The loader skips\u{1b}[2J falsy values.")];
    daemon(&home, echo, move |mut asked| {
        let last = if asked.params["last"] == 2 { &last[..] } else { &[] };
        asked.send_result(context(30, 12, last));
    });
    let out = leave(chat(&plain(&home)));
    assert!(out.contains("atlas · continuing (12 messages, last 2026-11-21 10:30"), "{out}");
    assert!(out.contains("  you: Why does the import drop rows?\r\n  atlas: The loader skips␛[2J falsy"), "{out}");
}

#[test]
fn messages_are_answered_and_the_prompt_comes_back() {
    let home = home();
    let calls = echoes(&home);
    let mut running = chat(&plain(&home));
    say(&mut running, "hello\r", "heard \"hello\"\r\n9 tokens in, 2 out · ");
    say(&mut running, "\r", PROMPT);
    // A line that ends in a backslash goes on, and a paste is one message.
    say(&mut running, "one\\\r", "…");
    running.type_and_wait("two\r", "heard \"one\\ntwo\"");
    say(&mut running, "\u{1b}[200~if x:\n    y \\\n    z\u{1b}[201~\r", "heard \"if x:\\n y \\\\n z\"");
    leave(running);
    assert_eq!(texts(&calls), ["hello", "one\ntwo", "if x:\n    y \\\n    z"]);
}

#[test]
fn ctrl_c_at_the_prompt_clears_the_line() {
    let home = home();
    let calls = echoes(&home);
    let mut running = chat(&plain(&home));
    say(&mut running, "not this", "not this");
    running.type_and_wait("\u{3}", PROMPT);
    say(&mut running, "nor\\\r", "…");
    running.type_and_wait("\u{3}", PROMPT);
    at_prompt(&running);
    // From elsewhere it does nothing: the terminal would be left as the prompt has it.
    running.interrupt();
    say(&mut running, "this\r", "heard \"this\"");
    leave(running);
    assert_eq!(texts(&calls), ["this"]);
}

#[test]
fn ctrl_c_in_a_turn_cancels_it_and_returns_to_the_prompt() {
    let (home, cancelled) = (home(), Gate::default());
    let told = cancelled.clone();
    let turn = move |mut asked: FakeRequest<'_>| {
        if asked.params["text"] == "after" {
            return echo(asked);
        }
        started(&mut asked);
        text(&mut asked, "Half");
        cancelled.wait();
        asked.send_error("interrupted", "the turn was cancelled", "it is kept");
    };
    let calls = daemon(&home, turn, move |mut asked| match &*asked.method {
        "send.cancel" => {
            asked.send_result(json!({"turn_id": asked.params["turn_id"]}));
            told.open();
        }
        _ => asked.send_result(context(0, 0, &[])),
    });
    let mut running = chat(&plain(&home));
    say(&mut running, "go on\r", "Half");
    let shown = running.type_and_wait("\u{3}", PROMPT);
    assert!(shown.contains("cancelled; the partial reply was kept"), "{shown}");
    say(&mut running, "after\r", "heard \"after\"");
    leave(running);
    assert_eq!(calls.of("send.cancel").len(), 1);
}

#[test]
fn another_clients_turn_is_waited_for_and_said() {
    let home = home();
    let turn = |mut asked: FakeRequest<'_>| {
        asked.send_progress(json!({"queued": {"before": 2}}));
        echo(asked);
    };
    daemon(&home, turn, |mut asked| asked.send_result(context(0, 0, &[])));
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "hello\r", "heard \"hello\"");
    assert!(shown.contains("waiting for 2 earlier messages"), "{shown}");
    leave(running);
}

#[test]
fn a_daemon_that_goes_away_is_told_and_the_next_message_connects_again() {
    let home = home();
    let turn = |mut asked: FakeRequest<'_>| {
        started(&mut asked);
        if asked.params["text"] == "one" { asked.disconnect() } else { echo(asked) }
    };
    let calls = daemon(&home, turn, |mut asked| asked.send_result(context(0, 0, &[])));
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "one\r", PROMPT);
    assert!(shown.contains("error: lost connection to the daemon") && shown.contains("to reconnect"), "{shown}");
    say(&mut running, "two\r", "heard \"two\"");
    leave(running);
    assert_eq!(texts(&calls), ["one", "two"], "nothing was sent twice");
}

#[test]
fn what_is_said_again_after_a_connection_that_broke_has_its_key_and_nothing_else_has() {
    let home = home();
    let broken = AtomicU64::new(0);
    let turn = move |asked: FakeRequest<'_>| {
        let breaks = asked.params["text"] == "one" && broken.fetch_add(1, Ordering::Relaxed) == 0;
        if breaks { asked.disconnect() } else { echo(asked) }
    };
    let calls = daemon(&home, turn, |mut asked| asked.send_result(context(0, 0, &[])));
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "one\r", PROMPT);
    assert!(shown.contains("is not sent twice"), "{shown}");
    for _ in 0..2 {
        say(&mut running, "one\r", "heard \"one\"");
    }
    leave(running);
    let keys: Vec<_> = calls.of("send").into_iter().map(|params| params["key"].clone()).collect();
    assert!(keys.iter().all(|key| key.as_str().is_some_and(|key| key.len() == 36)), "{keys:?}");
    assert!(keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
}

#[test]
fn in_another_conversation_the_same_words_are_another_message() {
    let home = home();
    let broken = AtomicU64::new(0);
    let turn = move |asked: FakeRequest<'_>| {
        if broken.fetch_add(1, Ordering::Relaxed) == 0 { asked.disconnect() } else { echo(asked) }
    };
    let calls = daemon(&home, turn, |mut asked| match &*asked.method {
        "context.clear" => asked.send_result(json!({"discarded": 0, "pins": 0, "saved": null})),
        _ => asked.send_result(context(0, 0, &[])),
    });
    let mut running = chat(&plain(&home));
    say(&mut running, "one\r", PROMPT);
    say(&mut running, "/new\r", "new conversation");
    say(&mut running, "one\r", "heard \"one\"");
    leave(running);
    let keys: Vec<_> = calls.of("send").into_iter().map(|params| params["key"].clone()).collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}

#[test]
fn a_failure_is_told_and_the_conversation_goes_on() {
    let home = home();
    let turn = |mut asked: FakeRequest<'_>| match asked.params["text"].as_str() {
        Some("bad") => asked.send_error("model_unavailable", "the model does not answer", "chorusctl models validate"),
        _ => echo(asked),
    };
    daemon(&home, turn, |mut asked| asked.send_result(context(0, 0, &[])));
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "bad\r", PROMPT);
    assert!(shown.contains("error: the model does not answer\r\nhint: /models validate"), "{shown}");
    say(&mut running, "good\r", "heard \"good\"");
    leave(running);
}

#[test]
fn a_conversation_that_was_put_away_meanwhile_is_told() {
    let home = home();
    let asked_so_far = AtomicU64::new(0);
    daemon(&home, echo, move |mut asked| {
        if asked.method == "approvals.list" {
            return asked.send_result(json!({"approvals": []}));
        }
        if asked.method != "context.show" {
            return asked.disconnect();
        }
        // At the opening there is one, before the message there is none, after it another.
        let shown = [context(30, 12, &[]), context(0, 0, &[]), context(45, 2, &[])];
        let at = usize::try_from(asked_so_far.fetch_add(1, Ordering::Relaxed)).unwrap_or(2).min(2);
        asked.send_result(shown[at].clone());
    });
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "hello\r", "heard \"hello\"");
    assert!(shown.contains("saved and cleared after being idle; this message starts a new one"), "{shown}");
    let shown = say(&mut running, "again\r", "heard \"again\"");
    assert!(!shown.contains("meanwhile"), "{shown}");
    leave(running);
}

#[test]
fn what_was_typed_is_remembered_for_its_owner_alone() {
    let home = home();
    echoes(&home);
    home.create();
    let mut running = chat(&plain(&home));
    say(&mut running, "first thing\r", "heard \"first thing\"");
    say(&mut running, "two\\\r", "…");
    running.type_and_wait("lines\r", "heard \"two\\nlines\"");
    leave(running);
    let file = home.path.join("chat_history");
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    let mut running: InteractiveCommand = chat(&plain(&home));
    say(&mut running, "\u{1b}[A\u{1b}[A\u{1b}[A\r", "heard \"first thing\"");
    leave(running);
}
