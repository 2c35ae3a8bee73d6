//! `[retention] sessions_compressed_after`: the files of sessions that nobody uses are compressed, and everything else is as it was.

mod changes;
mod moves;
mod reading;
mod upkeep;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::{Client, Message, NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::Value;

use crate::home;

const CONFIG: &str = "[retention]\nsessions_compressed_after = \"1d\"\n";

/// Messages of the session.
const MESSAGES: usize = 300;

/// A home with a session that was last used long ago.
struct Fixture {
    home: Home,
    session: Session,
    messages: Vec<Value>,
    /// The bytes of its plain file.
    text: Vec<u8>,
}

impl Fixture {
    /// The plain file of the session.
    fn plain(&self) -> PathBuf {
        self.home.sessions_dir("a").join(format!("{}.json", self.session.header.session_id))
    }

    fn compressed(&self) -> PathBuf {
        self.home.sessions_dir("a").join(format!("{}.json.gz", self.session.header.session_id))
    }

    /// Starts a daemon that compresses the session, and waits until it has.
    fn start_compressed(&self) -> Daemon {
        self.home.write_config(CONFIG);
        let daemon = Daemon::start(&self.home);
        wait_until("the session to be compressed", DEADLINE, || {
            (self.compressed().is_file() && !self.plain().exists() && self.is_indexed()).then_some(())
        });
        daemon
    }

    /// Returns true if the row of the session has the stamp of the compressed file.
    fn is_indexed(&self) -> bool {
        let database = rusqlite::Connection::open(self.home.path.join("db/chorus.db")).expect("the catalog");
        let id = self.session.header.id;
        let stamp: String = database
            .query_row("SELECT file_stamp FROM sessions WHERE id = ?1", [id.as_bytes()], |row| row.get(0))
            .expect("a stamp");
        stamp.starts_with(&format!("{}:", fs::metadata(self.compressed()).expect("the file").len()))
    }

    fn id(&self) -> String {
        self.session.header.id.to_string()
    }

    /// Compares what a client reads with what was saved.
    fn assert_reads(&self, client: &mut Client, at: &str) {
        let (read, messages) = client.get_session("a", &self.id());
        assert_eq!(read.header, self.session.header, "{at}");
        assert_eq!(json(&messages), self.messages, "{at}");
    }
}

/// Makes the home; `None` where session files are not compressed.
fn fixture() -> Option<Fixture> {
    let home = home();
    if home.database_url().is_some() {
        return None;
    }
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let session = put_aside(&mut client, "the long one", MESSAGES);
    let messages = json(&client.get_session("a", &session.header.id.to_string()).1);
    let text = fs::read(&session.file_path).expect("the file");
    stop_for_long(&home, daemon);
    Some(Fixture { home, session, messages, text })
}

/// Stops a daemon, and lets so much time pass that its sessions are unused.
fn stop_for_long(home: &Home, daemon: Daemon) {
    assert!(daemon.terminate().success());
    let database = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    database.execute("UPDATE sessions SET last_used_at = 0", []).expect("updated");
    database.close().expect("closed");
}

/// Saves a session of so many messages that no live context needs.
fn put_aside(client: &mut Client, description: &str, messages: usize) -> Session {
    let text = |n: usize| {
        format!("{description}, message {n}: the {} import dropped each row {n}\n", "nightly ".repeat(n % 20))
    };
    let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
    client.append_all("a", (0..messages).map(|n| NewMessage::text(role(n), text(n))).collect());
    let saved = client.save("a", description);
    client.call::<Clear>(&ClearParams { agent: Some("a".into()), ..Default::default() }).expect("context.clear");
    saved
}

/// Returns messages in a form that can be compared.
fn json(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::to_value(message).expect("serialises")).collect()
}

/// Decompresses a file as a person would without Chorus.
fn zcat(path: &std::path::Path) -> Vec<u8> {
    let out = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip");
    assert!(out.status.success(), "{out:?}");
    out.stdout
}
