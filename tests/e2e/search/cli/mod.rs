//! `chorusctl search` with a daemon that finds what a test wants.

mod exclusions;
mod output;
mod refusals;
mod status;
mod terminal;

use chorus_tests::Home;
use chorus_tests::fake_daemon::start_fake_daemon_with;
use serde_json::{Value, json};

use crate::send::cli::{Calls, daemon};

/// A hit in the session 9f1c27d4 of `api`, with `changes` to its fields.
pub fn hit(changes: Value) -> Value {
    let mut hit = json!({
        "agent_name": "api",
        "session": {"id": "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604", "short_id": "9f1c27d4", "session_id": "2026-03-02_rows"},
        "title": "Why the import drops rows",
        "message": 16,
        "role": "user",
        "speaker": "mara",
        "at": "2026-03-02T15:10:04Z",
        "snippet": "… we drop Redis, because the pool runs dry twice a day …",
        "marks": [[5, 9], [10, 15]],
        "score": 12.5,
    });
    let fields = hit.as_object_mut().expect("an object");
    fields.extend(changes.as_object().expect("an object").clone());
    hit
}

/// The result of a search of `api`, with a complete index.
pub fn result(hits: Vec<Value>) -> Value {
    json!({"agent_name": "api", "hits": hits, "index": {"complete": true, "indexed": 9, "total": 9, "messages": 120}})
}

/// A daemon that answers every search with `result`.
fn finds(home: &Home, result: Value) -> Calls {
    let rest = move |mut asked: chorus_tests::fake_daemon::FakeRequest<'_>| match &*asked.method {
        "search" => asked.send_result(result.clone()),
        method => panic!("{method} was asked"),
    };
    daemon(home, |asked| panic!("{} was asked", asked.method), rest)
}

/// A daemon that refuses every search.
fn refuses(home: &Home, kind: &'static str, message: &'static str, hint: &'static str) {
    start_fake_daemon_with(home, move |mut asked| match &*asked.method {
        // The home looks for a daemon that was left behind.
        "hello" => asked.disconnect(),
        _ => asked.send_error(kind, message, hint),
    });
}
