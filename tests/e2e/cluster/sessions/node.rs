//! A node: its connection to the database, its home, and what it shares.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::Durability;
use chorus_catalog::{AgentRow, NewSession, SessionPlacement, SessionRow, place_of};
use chorus_clock::Clock;
use chorus_proto::{AgentStatus, SessionHeader};
use chorus_session::stored_message::StoredMessage;
use chorus_session_objects::{Bucket, DirectoryBucket, ObjectBodies, Prefix};
use chorus_shared_sessions::{SharedSessions, SharedSessionsParts};
use chorus_store::{SessionFiles, Store, session_files};
use chorus_store_postgres::PostgresJournal;
use chorus_tests::postgres::Database;
use tempfile::TempDir;
use uuid::Uuid;

use super::super::{Result, at, open};
use super::texts;

/// A node without a daemon.
pub(super) struct Node {
    pub(super) journal: Arc<PostgresJournal>,
    pub(super) shared: Arc<SharedSessions>,
    pub(super) store: Store,
    pub(super) bucket: PathBuf,
    home: TempDir,
}

impl Node {
    /// Starts a node whose bucket is a directory. Its copies may have `max_copied_bytes`.
    pub(super) async fn start(database: &Database, name: &str, bucket: &Path, max_copied_bytes: u64) -> Result<Self> {
        let shared = Arc::new(DirectoryBucket::open(bucket)?);
        Self::start_on(database, name, (shared, bucket), max_copied_bytes).await
    }

    /// As [`Node::start`], with any bucket.
    pub(super) async fn start_on(
        database: &Database,
        name: &str,
        (bucket, path): (Arc<dyn Bucket>, &Path),
        max_copied_bytes: u64,
    ) -> Result<Self> {
        let journal = Arc::new(open(database, name).await?);
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("db"))?;
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        // The agents of a node are in its own catalog here, the sessions in the database of all.
        let mut store = Store::open(home.path(), Durability::Always, &(Arc::new(|_| ()) as _), at(0), redactor)?;
        let files = Arc::<SessionFiles>::default();
        let prefix = Prefix::new("")?;
        let shared = SharedSessions::new(SharedSessionsParts {
            bodies: ObjectBodies::new(bucket.clone(), prefix.clone(), None, Clock::system()),
            bucket,
            prefix,
            sessions: journal.session_table(Arc::default()),
            agents: store.catalog.agents.clone(),
            workspaces: journal.workspace_bundle_table(),
            node: name.to_owned(),
            ownership: journal.clone(),
            files: files.clone(),
            home: home.path().to_owned(),
            max_copied_bytes,
            clock: Clock::system(),
        });
        store.catalog.sessions = shared.table();
        let store = store.with_bodies(shared.clone(), files);
        Ok(Self { journal, shared, store, bucket: path.to_owned(), home })
    }

    pub(super) async fn add_agent(&self, id: Uuid) -> Result {
        fs::create_dir_all(self.dir().join("sessions"))?;
        let row = AgentRow {
            id,
            name: "a".to_owned(),
            status: AgentStatus::Active,
            created_at: at(0),
            dir: "agents/a".to_owned(),
            config: "{}".to_owned(),
            stamp: String::new(),
            sessions: 0,
        };
        Ok(self.store.catalog.agents.upsert(row).await?)
    }

    /// The directory of the agent.
    pub(super) fn dir(&self) -> PathBuf {
        self.home.path().join("agents/a")
    }

    pub(super) fn path(&self, header: &SessionHeader) -> PathBuf {
        session_files::path_of(&self.dir(), &header.session_id)
    }

    /// Saves a session: first the file, then the row.
    pub(super) async fn save(&self, header: &SessionHeader, messages: &[StoredMessage]) -> Result<SessionRow> {
        let sha256 = session_files::hash_messages(messages);
        let written = session_files::stage(&self.dir(), header, messages, sha256)?.persist()?;
        let row = SessionRow {
            header: header.clone(),
            sha256: written.sha256,
            file_stamp: written.stamp,
            corrupt: None,
            last_used_at: header.saved_at,
            place: place_of(header),
            body: None,
        };
        self.store.catalog.sessions.insert(NewSession::new(row, SessionPlacement::Last)).await?;
        self.row(header.id).await
    }

    pub(super) async fn row(&self, id: Uuid) -> Result<SessionRow> {
        Ok(self.store.catalog.sessions.get(id).await?.ok_or("no row")?)
    }

    /// Reads a session through its file, as requests do. Returns the messages as they are in the file.
    pub(super) async fn read(&self, id: Uuid) -> Result<(SessionHeader, Vec<String>)> {
        let path = self.store.local_file(&self.row(id).await?, &self.dir()).await?;
        let file = session_files::read(&path)?.file?;
        Ok((file.header, texts(&file.messages)))
    }
}
