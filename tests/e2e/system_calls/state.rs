//! What an agent holds, and that everything in a home is whole.

use std::collections::BTreeSet;
use std::fs;

use chorus_proto::{Client, Message};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::Value;

/// What stands for a message that Chorus wrote.
pub const GENERATED: &str = "(generated)";

/// The live context of an agent, and every saved one, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub live: Vec<String>,
    pub saved: Vec<Vec<String>>,
}

impl State {
    pub fn of(client: &mut Client, agent: &str) -> Self {
        let mut sessions = client.history(agent);
        sessions.reverse();
        // What Chorus wrote itself is not what must not be lost.
        let said = |message: Message| if message.generated { GENERATED.to_owned() } else { message.content };
        let texts = |session: &chorus_proto::Session| {
            let (_, messages) = client.get_session(agent, &session.header.id.to_string());
            messages.into_iter().map(said).collect()
        };
        let saved = sessions.iter().map(texts).collect();
        Self { live: client.messages(agent).into_iter().map(said).collect(), saved }
    }

    /// The same with the live context saved.
    pub fn with_save(&self) -> Self {
        let mut saved = self.saved.clone();
        saved.push(self.live.clone());
        Self { live: self.live.clone(), saved }
    }
}

/// Names of an agent's session files; each must be whole.
fn files(home: &Home, agent: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(home.sessions_dir(agent)).expect("sessions/") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if let Some(session) = name.strip_suffix(".json") {
            let text = fs::read_to_string(&path).expect("a readable session");
            let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let count = file["messages"].as_array().map(|messages| messages.len() as u64);
            assert_eq!(count, file["message_count"].as_u64(), "{name}");
            assert_eq!(file["session_id"], session);
            names.insert(session.to_owned());
        } else {
            names.insert(name);
        }
    }
    names
}

/// Waits until the catalog lists just the files there are, and nothing half-written lies beside them.
pub fn assert_catalog_fits_files(daemon: &Daemon, home: &Home, agent: &str) {
    let mut client = daemon.client();
    wait_until(&format!("the catalog of {agent} to fit its files"), DEADLINE, || {
        let listed: Vec<_> = client.history(agent);
        assert!(listed.iter().all(|session| session.corrupt.is_none()), "{listed:?}");
        let names: BTreeSet<_> = listed.iter().map(|session| session.header.session_id.clone()).collect();
        (names.len() == listed.len() && names == files(home, agent)).then_some(())
    });
}

/// Checks both databases of a stopped home.
pub fn assert_databases_whole(home: &Home) {
    for name in ["live.db", "chorus.db"] {
        let database = rusqlite::Connection::open(home.path.join("db").join(name)).expect("the database");
        let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a verdict");
        assert_eq!(verdict, "ok", "{name}");
    }
    // Leftovers of a crash are not taken for damage.
    let names = fs::read_dir(home.path.join("db")).expect("db/").map(|entry| entry.expect("an entry").file_name());
    let aside: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("damaged-")).collect();
    assert!(aside.is_empty(), "{aside:?}");
}
