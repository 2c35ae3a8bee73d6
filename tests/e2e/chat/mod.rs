//! `chat` before a daemon that says what a test wants.

mod files;
mod interactive;
mod meter;
mod notices;
mod piped;
mod slash_commands;

use std::process::Command;

use chorus_tests::fake_daemon::FakeRequest;
use chorus_tests::{Home, InteractiveCommand};
use serde_json::{Value, json};

use crate::send::cli::{Calls, command, daemon, replies, started, text};

/// A line of the opening that tells that it is there.
const OPENED: &str = "type /help for commands";
/// The prompt, once it is read at.
const PROMPT: &str = "atlas> ";

/// What `context.show` answers: a context that began at that minute, with its last messages.
fn context(minute: u64, messages: u64, last: &[(&str, &str)]) -> Value {
    let began = format!("2026-11-21T10:{minute:02}:00Z");
    let shown =
        last.iter().map(|(role, content)| json!({"id": "m", "role": role, "content": content, "timestamp": began}));
    let context = json!({"messages": messages, "token_estimate": 9, "started_at": began, "last_activity_at": began,
        "idle_deadline_at": null, "parent_id": null, "unsaved": messages});
    json!({"agent_name": "atlas", "messages": shown.collect::<Vec<_>>(), "working_set": {},
        "context": if messages == 0 { Value::Null } else { context }, "next": null})
}

/// Says each message again.
fn echo(mut asked: FakeRequest<'_>) {
    started(&mut asked);
    let said = format!("heard {}", asked.params["text"]);
    text(&mut asked, &said);
    replies(&mut asked, &said);
}

/// A daemon with an empty context that says each message again.
fn echoes(home: &Home) -> Calls {
    daemon(home, echo, |mut asked| asked.send_result(context(0, 0, &[])))
}

/// `chat` at a terminal, when it is ready.
fn chat(command: &Command) -> InteractiveCommand {
    let running = InteractiveCommand::on_terminal(command);
    running.stdout.wait_for(OPENED);
    at_prompt(&running);
    running
}

/// Waits until the prompt is there and nothing was typed at it.
fn at_prompt(running: &InteractiveCommand) {
    running.wait_for_empty_prompt(PROMPT);
}

/// Types at the prompt, and waits until `what` is shown.
fn say(running: &mut InteractiveCommand, text: &str, what: &str) -> String {
    at_prompt(running);
    running.type_and_wait(text, what)
}

/// The texts that were sent.
fn texts(calls: &Calls) -> Vec<Value> {
    calls.of("send").into_iter().map(|params| params["text"].clone()).collect()
}

/// Leaves by Ctrl-D, which is no failure.
fn leave(running: InteractiveCommand) -> String {
    running.leave_chat(PROMPT)
}

fn plain(home: &Home) -> Command {
    command(home, &["--agent", "atlas", "chat"])
}
