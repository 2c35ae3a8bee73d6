//! `send` before a daemon that says what a test wants, when it wants.

mod exit_status;
mod input;
mod interrupt;
mod output;

use std::process::Command;
use std::sync::{Arc, Mutex};

use chorus_tests::Home;
use chorus_tests::fake_daemon::{FakeRequest, start_fake_daemon_with};
use serde_json::{Value, json};

pub const TURN: &str = "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a07";

/// What was asked, in order.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<(String, Value)>>>);

impl Calls {
    /// Params of every call of `method`.
    pub fn of(&self, method: &str) -> Vec<Value> {
        let calls = self.0.lock().expect("the calls");
        calls.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }
}

/// A daemon that has turns as `turn` plays them. A cancel is taken, and a context shown, by `rest`.
pub fn daemon(
    home: &Home,
    turn: impl Fn(FakeRequest<'_>) + Send + Sync + 'static,
    rest: impl Fn(FakeRequest<'_>) + Send + Sync + 'static,
) -> Calls {
    let calls = Calls::default();
    let called = calls.clone();
    start_fake_daemon_with(home, move |asked| {
        called.0.lock().expect("the calls").push((asked.method.clone(), asked.params.clone()));
        match &*asked.method {
            "send" => turn(asked),
            // The home looks for a daemon that was left behind.
            "hello" => asked.disconnect(),
            _ => rest(asked),
        }
    });
    calls
}

/// A daemon of which only turns are asked.
pub fn talks(home: &Home, turn: impl Fn(FakeRequest<'_>) + Send + Sync + 'static) -> Calls {
    daemon(home, turn, |asked| panic!("{} was asked", asked.method))
}

pub fn started(asked: &mut FakeRequest<'_>) {
    asked.send_progress(json!({"started": {"turn_id": TURN}}));
}

pub fn text(asked: &mut FakeRequest<'_>, text: &str) {
    asked.send_progress(json!({"text": text}));
}

pub fn replies(asked: &mut FakeRequest<'_>, reply: &str) {
    asked.send_result(result(reply));
}

pub fn result(reply: &str) -> Value {
    json!({"reply": reply, "turn_id": TURN, "usage": {"input_tokens": 9, "output_tokens": 2}, "tool_calls": []})
}

/// `chorusctl` with these arguments.
pub fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(home.bins.chorusctl);
    command.args(args);
    command
}
