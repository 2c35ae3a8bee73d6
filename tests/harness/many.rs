//! Many sessions at once, as files: faster than saving each.

use std::fs;

use serde_json::Value;

use crate::home::Home;

/// Writes `count` copies of a session of `agent`, each with a name, an id and a minute of its own.
///
/// # Panics
/// Where the session is not there, or the disk does not take its copies.
pub fn multiply(home: &Home, agent: &str, session_id: &str, count: usize) {
    let dir = home.sessions(agent);
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
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode");
    }
}
