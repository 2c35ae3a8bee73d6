//! Creates many sessions or agents by writing files, which is faster than requests, and long contexts.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use chorus_proto::methods::context::{History, HistoryParams, Save, SaveParams};
use chorus_proto::{Client, NewMessage, Role};
use serde_json::{Value, json};

use crate::client_ext::ClientExt as _;
use crate::daemon::Daemon;
use crate::home::Home;
use crate::measure::time;
use crate::wait::{DEADLINE, wait_until};

/// Writes `count` copies of a session of `agent`, each with its own name, id and minute.
pub fn copy_session(home: &Home, agent: &str, session_id: &str, count: usize) {
    let dir = home.sessions_dir(agent);
    let text = fs::read_to_string(dir.join(format!("{session_id}.json"))).expect("the session");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let (id, saved_at) = (file["id"].as_str().expect("an id"), file["saved_at"].as_str().expect("a time"));
    for n in 0..count {
        let name = format!("2026-01-{:02}_copy-{n}", n % 28 + 1);
        let copy = text
            .replacen(session_id, &name, 1)
            .replacen(id, &format!("{n:08x}-0000-4000-8000-{n:012x}"), 1)
            .replacen(saved_at, &format!("2026-01-{:02}T{:02}:{:02}:00Z", n % 28 + 1, n / 60 % 24, n % 60), 1);
        let path = dir.join(format!("{name}.json"));
        fs::write(&path, copy).expect("a copy");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    }
}

/// Writes the directories of `count` agents, `agent-0` and so on, as `agent init` leaves them except for git; the next
/// start adopts them. Starts and stops a daemon first to create the journal, because no daemon creates one in a home
/// that has agents already.
pub fn create_agents(home: &Home, count: usize) {
    Daemon::start(home).terminate();
    for n in 0..count {
        let dir = home.agent_dir(&format!("agent-{n}"));
        for part in ["docs", "sessions", "workspace"] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.join(part)).expect("a directory");
        }
        let config = json!({
            "id": format!("{n:08x}-0000-4000-8000-{n:012x}"), "name": format!("agent-{n}"),
            "system_prompt": "You are an agent.", "created_at": "2026-01-01T00:00:00Z",
        });
        let path = dir.join("agent.json");
        fs::write(&path, config.to_string()).expect("agent.json");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    }
}

/// Returns the number of messages of the largest contexts of benches, which `CHORUS_MESSAGES` can set.
#[must_use]
pub fn message_count() -> usize {
    std::env::var("CHORUS_MESSAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_000)
}

/// Returns text of the usual length of messages in transcripts.
#[must_use]
pub fn usual_text() -> String {
    "The nightly import dropped every row whose country was empty, \"quoted\" or not.\n".repeat(6)
}

/// Returns a message of 1,024 bytes. It has words, because the search index has nothing to do for a text without any.
#[must_use]
pub fn text_of_kilobyte() -> String {
    let mut text = usual_text().repeat(3);
    text.truncate(1024);
    text
}

/// Creates `agent` and appends `count` messages of the usual length of transcripts, a thousand at once.
pub fn fill_context(client: &mut Client, agent: &str, count: usize) {
    client.init(agent);
    let text = usual_text();
    for batch in 0..count / 1000 {
        let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (0..1000).map(|n| NewMessage::text(role(n), format!("{batch} {n} {text}")));
        client.append_all(agent, messages.collect());
    }
}

/// Appends `messages` messages of 60 words to the conversation of each of the first `count` agents of [`create_agents`].
pub fn append_to_agents(daemon: &Daemon, count: usize, messages: usize) {
    const CLIENTS: usize = 4;
    std::thread::scope(|scope| {
        for part in 0..CLIENTS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for n in (part..count).step_by(CLIENTS) {
                    let text = |n| NewMessage::text(Role::User, format!("message {n} {}", "word ".repeat(60)));
                    client.append_all(&format!("agent-{n}"), (0..messages).map(text).collect());
                }
            });
        }
    });
}

/// Waits until there are `count` saved sessions. Returns when it saw the first one, and when all.
pub fn wait_for_saves(client: &mut Client, count: usize) -> (Instant, Instant) {
    let params = HistoryParams { all_agents: true, limit: Some(1), ..HistoryParams::default() };
    let (mut first, mut asked) = (None, Instant::now());
    let ended = wait_until("every context to be saved", DEADLINE * 4, || {
        // Poll every 20 ms: precise enough, and hardly any load.
        if asked.elapsed() < Duration::from_millis(20) {
            return None;
        }
        asked = Instant::now();
        let total = client.call::<History>(&params).expect("a page").total;
        if total > 0 {
            first.get_or_insert_with(Instant::now);
        }
        (total >= count as u64).then(Instant::now)
    });
    (first.expect("a first one"), ended)
}

/// Returns how long a save takes until it is answered. Without a model its summary is in the answer, so nothing of it is left to
/// be done, except that it is indexed.
pub fn time_save(client: &mut Client, agent: &str) -> Duration {
    let params = SaveParams { agent: Some(agent.into()), description: Some("bench".into()), ..Default::default() };
    let mut session = None;
    let took = time(|| session = Some(client.call::<Save>(&params).expect("saved").session));
    assert!(session.is_some_and(|session| session.header.summary.is_some()), "a summary that comes later");
    took
}
