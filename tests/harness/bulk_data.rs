//! Creates many sessions or agents by writing files, which is faster than requests.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::home::Home;

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
