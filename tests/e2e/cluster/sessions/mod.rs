//! Sessions whose bodies several nodes share, with one PostgreSQL and one bucket.

mod copies;
#[cfg(feature = "cluster")]
mod daemons;
mod limits;
mod node;
mod writes;

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::SessionHeader;
use chorus_session::stored_message::StoredMessage;
use chorus_tests::postgres::Database;
use chorus_tests::{DEADLINE, wait_until};
use uuid::Uuid;

use super::{Result, claim};
use node::Node;

/// Two nodes with the same agent, which the first one owns.
struct Pair {
    a: Node,
    b: Node,
    agent: Uuid,
    database: Database,
}

impl Pair {
    /// Starts them; `None` if PostgreSQL is not installed.
    async fn start() -> Result<Option<Self>> {
        let Some(database) = Database::create().await? else { return Ok(None) };
        let bucket = tempfile::tempdir()?.keep();
        let agent = Uuid::new_v4();
        let a = Node::start(&database, "a", &bucket, u64::MAX).await?;
        let b = Node::start(&database, "b", &bucket, u64::MAX).await?;
        for node in [&a, &b] {
            node.add_agent(agent).await?;
        }
        claim(&a.journal, agent).await?;
        Ok(Some(Self { a, b, agent, database }))
    }

    /// Moves the agent from one node to the other.
    async fn move_agent(&self, from: &Node, to: &Node) -> Result {
        from.journal.release(self.agent).await?;
        claim(&to.journal, self.agent).await?;
        Ok(())
    }

    /// Makes the file of a session out of date, as a row that another node has written does.
    async fn forget_stamp(&self, session: Uuid) -> Result {
        let client = self.database.connect().await?;
        client.execute("UPDATE sessions SET file_stamp = '' WHERE id = $1", &[&session]).await?;
        Ok(())
    }

    /// The bucket is not there until the returned value is dropped.
    fn take_bucket_away(&self) -> Result<Away> {
        let away = self.a.bucket.with_extension("away");
        fs::rename(&self.a.bucket, &away)?;
        fs::write(&self.a.bucket, "")?;
        Ok(Away { bucket: self.a.bucket.clone(), away })
    }
}

/// A bucket that is elsewhere.
struct Away {
    bucket: PathBuf,
    away: PathBuf,
}

impl Drop for Away {
    fn drop(&mut self) {
        fs::remove_file(&self.bucket).expect("what stood in its place");
        fs::rename(&self.away, &self.bucket).expect("the bucket");
    }
}

fn header(agent: Uuid, name: &str, count: usize) -> SessionHeader {
    let json = serde_json::json!({
        "schema": 2, "id": Uuid::new_v4(), "session_id": name, "agent_id": agent, "agent_name": "a",
        "description": "the title", "summary": null, "summary_source": "none", "saved_at": "2027-01-15T08:00:00Z",
        "started_at": "2027-01-15T07:00:00Z", "trigger": "manual_save", "model": null, "message_count": count,
        "query_count": count, "token_estimate": 1, "restoration_tokens": {"input": 0, "output": 0}, "parent_id": null,
        "workspace_commit": null, "tags": ["one"], "working_set": {"pinned_facts": [{"id": "1", "text": "a pinned fact", "source": "hand"}]}
    });
    serde_json::from_value(json).expect("a header")
}

/// Messages with numbers as texts, of about `bytes` bytes each.
fn messages(count: usize, bytes: usize) -> Vec<StoredMessage> {
    let text = "x".repeat(bytes);
    let json =
        |n: usize| format!(r#"{{"id":"{n}","role":"user","content":"{n} {text}","timestamp":"2027-01-15T08:00:00Z"}}"#);
    (0..count).map(|n| StoredMessage::parse(json(n).into()).expect("a message")).collect()
}

/// Returns messages as they are stored.
fn texts(messages: &[StoredMessage]) -> Vec<String> {
    messages.iter().map(|message| String::from_utf8_lossy(message.json()).into_owned()).collect()
}

/// Returns the objects below a directory that is a bucket, sorted.
pub(super) fn objects(bucket: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![bucket.join("agents")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { &mut dirs } else { &mut found }.push(path);
        }
    }
    found.sort();
    found
}

/// Waits until the bucket has so many objects: those that no row names are deleted in the background.
async fn wait_for_objects(pair: &Pair, count: usize) -> Result {
    let bucket = pair.a.bucket.clone();
    let all = move || (objects(&bucket).len() == count).then_some(());
    Ok(chorus_runtime::spawn_blocking(move || wait_until("objects of the bucket", DEADLINE, all)).await?)
}
