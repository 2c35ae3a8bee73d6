//! P22: what an older version wrote loads for ever, and what a newer one wrote is refused, untouched.
//! tests/fixtures/README.md says what is there and how it was made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home};
use rusqlite::Connection;
use serde_json::{Map, Value, json};

use crate::home;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Everything that the agents of a home say.
fn told(client: &mut Client, agents: &[&str]) -> Value {
    let mut all = Map::new();
    for agent in agents {
        let sessions = client.history(agent);
        let sessions: Vec<Value> = sessions
            .into_iter()
            .map(|session| {
                let (header, messages) = client.get_session(agent, &session.header.id.to_string());
                assert!(header.available && header.corrupt.is_none(), "{header:?}");
                json!({"header": header.header, "messages": messages})
            })
            .collect();
        all.insert((*agent).to_owned(), json!({"live": client.messages(agent), "sessions": sessions}));
    }
    Value::Object(all)
}

/// Whether all of `old` is in `new`; a newer version may say more.
fn holds(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|new| holds(new, value)))
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| holds(new, old))
        }
        (new, old) => new == old,
    }
}

/// A home of its own with a copy of the fixture `name`.
pub fn copied(name: &Path) -> Home {
    let home = home();
    home.create();
    for folder in ["agents", "db"] {
        let mut cp = std::process::Command::new("cp");
        let done = cp.arg("-r").arg(name.join(folder)).arg(&home.path).status().expect("cp");
        assert!(done.success());
    }
    home
}

pub fn homes() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("fixtures/").map(|entry| entry.expect("an entry").path());
    let homes: Vec<_> = entries.filter(|path| path.join("db").is_dir()).collect();
    assert!(!homes.is_empty());
    homes
}

const AGENTS: [&str; 2] = ["plain", "restored"];

/// Writes the fixture of this version where `CHORUS_FIXTURES=make` asks for it.
fn make(folder: &Path) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let call = json!({"role": "assistant", "content": "I look.", "tool_calls":
        [{"id": "c1", "name": "view", "params": {"path": "a.rs", "from": 1.50}}]});
    let result = json!({"role": "tool_result", "content": "fn main() {}", "tool_call_id": "c1", "name": "view"});
    let talk = || [&call, &result].map(|value| serde_json::from_value(value.clone()).expect("a message"));
    for agent in AGENTS {
        client.init(agent);
        client.append(agent, "Grüße ✓ \u{1F980}, what is in a.rs?");
        client.append_all(agent, talk().to_vec());
    }
    client.save("restored", "What is in a.rs");
    client.append_all("restored", vec![NewMessage::text(Role::Assistant, "An empty main.")]);
    // A context that refers to its session, and a message after it.
    client.restore("restored", "latest");
    client.append("restored", "And what is in b.rs?");
    daemon.terminate();
    let daemon = Daemon::start(&home);
    let said = told(&mut daemon.client(), &AGENTS);
    daemon.terminate();
    fs::create_dir_all(folder).expect("the fixture");
    fs::write(folder.join("expected.json"), format!("{said:#}\n")).expect("expected.json");
    for file in ["db/live.db", "db/chorus.db"].map(PathBuf::from).into_iter().chain(AGENTS.iter().flat_map(|agent| {
        let folder = PathBuf::from("agents").join(agent);
        let sessions = fs::read_dir(home.sessions_dir(agent)).expect("sessions/");
        let names = sessions.map(|entry| entry.expect("an entry").file_name());
        let sessions: Vec<_> = names.map(|name| folder.join("sessions").join(name)).collect();
        sessions.into_iter().chain([folder.join("agent.json")])
    })) {
        let target = folder.join(&file);
        fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        fs::copy(home.path.join(&file), target).expect("copied");
    }
}

#[test]
fn homes_of_every_version_load_with_all_they_held() {
    if std::env::var("CHORUS_FIXTURES").is_ok_and(|value| value == "make") {
        make(&fixtures().join(concat!("home-", env!("CARGO_PKG_VERSION"))));
    }
    for folder in homes() {
        let home = copied(&folder);
        let expected = fs::read_to_string(folder.join("expected.json")).expect("expected.json");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let found = told(&mut client, &AGENTS);
        assert!(holds(&found, &expected), "{}: {found:#}", folder.display());
        // It goes on from there.
        client.append("plain", "one more");
        client.restore("restored", "latest~1");
        assert!(daemon.terminate().success());
        let daemon = Daemon::start(&home);
        assert_eq!(daemon.client().message_texts("plain").last().map(String::as_str), Some("one more"));
    }
}

/// Each file of a folder with its bytes.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

#[test]
fn the_next_schema_of_a_database_is_refused_untouched() {
    for name in ["live.db", "chorus.db"] {
        let home = copied(&homes()[0]);
        // As this version leaves it.
        Daemon::start(&home).terminate();
        let database = Connection::open(home.path.join("db").join(name)).expect("the database");
        let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
        database.pragma_update(None, "user_version", version + 1).expect("the next");
        database.close().expect("closed");
        let before = bytes(&home.path.join("db"));
        let (status, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
        assert!(status.code().is_some_and(|code| code != 0), "{status}");
        assert!(said.contains(name) && said.contains("hint: "), "{said}");
        let mut after = bytes(&home.path.join("db"));
        // SQLite may have looked at the other one; an empty log and its index say nothing.
        after.retain(|path, _| before.contains_key(path));
        assert!(after == before, "{name}: something was touched");
    }
}

/// Session files of schema 1 in both its forms, and of schema 2.
#[test]
fn session_files_of_every_schema_load() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("old");
    daemon.terminate();
    let files = bytes(&fixtures().join("sessions"));
    for path in files.keys() {
        fs::copy(path, home.sessions_dir("old").join(path.file_name().expect("a name"))).expect("copied");
    }
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = chorus_tests::wait_until("the files to be listed", chorus_tests::DEADLINE, || {
        let sessions = client.history("old");
        (sessions.len() == files.len()).then_some(sessions)
    });
    for (path, bytes) in &files {
        let file: Value = serde_json::from_slice(bytes).expect("JSON");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let session = sessions.iter().find(|session| session.header.session_id == name).expect("listed");
        assert!(session.available && session.corrupt.is_none(), "{session:?}");
        let (header, messages) = client.get_session("old", name);
        let header = serde_json::to_value(header.header).expect("serialises");
        let kept = ["description", "summary", "trigger", "tags", "working_set", "parent_id", "model", "message_count"];
        for (key, value) in file.as_object().expect("an object").iter().filter(|(key, _)| kept.contains(&key.as_str()))
        {
            assert_eq!(&header[key], value, "{name}: {key}");
        }
        let time = |of: &Value| of.as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
        assert_eq!(time(&header["saved_at"]), time(file.get("saved_at").unwrap_or(&file["timestamp"])), "{name}");
        let messages = serde_json::to_value(messages).expect("serialises");
        assert!(holds(&messages, &file["messages"]), "{name}: {messages:#}");
        assert!(client.restore("old", name).warnings.is_empty(), "{name}");
        assert_eq!(client.message_texts("old").len() as u64, header["message_count"], "{name}");
        assert_eq!(&fs::read(home.sessions_dir("old").join(path.file_name().expect("a name"))).expect("it"), bytes);
    }
}

/// Requests as protocol 1 sends them are still understood: refused for what they ask at most, not for how.
#[test]
fn requests_of_every_protocol_are_understood() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/golden");
    let home = home();
    let mut daemon = Daemon::start(&home);
    for version in fs::read_dir(golden).expect("golden/") {
        for (path, body) in bytes(&version.expect("an entry").path()) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if !name.contains(".request") || name.starts_with("daemon.stop") {
                continue;
            }
            let answer = daemon.raw_connection().exchange(&body);
            let code = answer["error"]["code"].as_i64().unwrap_or(0);
            assert!(![-32700, -32600, -32601, -32602].contains(&code), "{name}: {answer}");
        }
    }
    daemon.assert_alive();
}
