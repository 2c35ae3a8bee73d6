//! The same script for the tables of SQLite and those of PostgreSQL.

use std::fmt::Debug;
use std::sync::Arc;

use chorus_base::Durability;
use chorus_base::error::Result as TableResult;
use chorus_catalog::SessionChanges;
use chorus_redact::Redactor;
use chorus_store::Store;
use chorus_store_postgres::{AgentTables, PostgresJournal};
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::{Database, Result};
use tokio_postgres::Client;
use uuid::Uuid;

use super::rows::session;
use crate::cluster::{at, claim, open_at};

pub(super) const AGENT: Uuid = Uuid::from_u128(0xa);
pub(super) const OTHER: Uuid = Uuid::from_u128(0xb);
const AGENTS: [Uuid; 4] = [AGENT, OTHER, Uuid::from_u128(0xc), Uuid::from_u128(0xd)];

/// One of the agents that the node owns.
pub(super) fn agent(number: u64) -> Uuid {
    AGENTS[usize::try_from(number).unwrap_or(0) % AGENTS.len()]
}

/// The results of the tables, one a line.
pub(super) struct Script {
    pub(super) tables: AgentTables,
    pub(super) changes: Arc<SessionChanges>,
    sessions: Sessions,
    pub(super) lines: Vec<String>,
}

/// The database in which rows of sessions are inserted.
enum Sessions {
    Sqlite(Arc<Store>),
    Postgres(Client),
}

impl Script {
    pub(super) fn note(&mut self, what: &str, result: &impl Debug) {
        self.lines.push(format!("{what}: {result:?}"));
    }

    /// Notes a result, or the kind of the error.
    pub(super) fn outcome<T: Debug>(&mut self, what: &str, result: TableResult<T>) {
        match result {
            Ok(value) => self.note(what, &value),
            Err(failure) => self.note(what, &failure.kind),
        }
    }

    /// Inserts the row of a session that holds a conversation of another program.
    pub(super) async fn add_session(&self, number: u128, agent: Uuid, conversation: &str) -> Result {
        let new = session(number, agent, conversation);
        match &self.sessions {
            Sessions::Sqlite(store) => drop(store.catalog.sessions.insert(new).await?),
            Sessions::Postgres(client) => insert_session(client, number, agent, conversation).await?,
        }
        Ok(())
    }

    /// Deletes the row of a session, as if it were in the trash.
    pub(super) async fn remove_session(&self, number: u128) -> Result {
        match &self.sessions {
            Sessions::Sqlite(store) => store.catalog.sessions.delete(Uuid::from_u128(number)).await?,
            Sessions::Postgres(client) => {
                client.execute("DELETE FROM sessions WHERE id = $1", &[&Uuid::from_u128(number)]).await?;
            }
        }
        Ok(())
    }
}

/// Inserts a row of a session of the program `codex`.
pub(super) async fn insert_session(client: &Client, number: u128, agent: Uuid, conversation: &str) -> Result {
    let sql = "INSERT INTO sessions (id, agent_id, session_id, conversation_id, saved_at, last_used_at, place, sha256,
             file_stamp, header, started_at, held_at, messages, imported, source_program, source_conversation, project,
             tags, search_text)
         VALUES ($1, $2, $3, $2, 0, 0, 0, '', '', '{}', 0, 0, 1, true, 'codex', $4, '/p', '{}', '')";
    client.execute(sql, &[&Uuid::from_u128(number), &agent, &format!("s{number}"), &conversation]).await?;
    Ok(())
}

/// A redactor as the daemon has it.
pub(super) fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new(|| [0; 32]))
}

/// The tables of a node, and what it tells the index of sessions.
pub(super) fn tables_of(journal: &PostgresJournal) -> (AgentTables, Arc<SessionChanges>) {
    let changes = Arc::<SessionChanges>::default();
    (AgentTables::new(journal, redactor(), changes.clone()), changes)
}

/// A home with the tables in SQLite.
pub(super) struct SqliteHome {
    _dir: tempfile::TempDir,
    store: Arc<Store>,
}

impl SqliteHome {
    pub(super) fn open() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::create_dir(dir.path().join("db"))?;
        let on_fatal: chorus_store::OnFatal = Arc::new(|_| ());
        let store = Store::open(dir.path(), Durability::Always, &on_fatal, at(0), redactor())?;
        Ok(Self { _dir: dir, store: Arc::new(store) })
    }

    pub(super) fn script(&self) -> Script {
        let catalog = &self.store.catalog;
        let tables = AgentTables {
            agents: catalog.agents.clone(),
            settings: catalog.settings.clone(),
            approvals: catalog.approvals.clone(),
            audit: catalog.audit.clone(),
            usage: catalog.usage.clone(),
            imported_usage: catalog.imported_usage.clone(),
            tasks: catalog.tasks.clone(),
            memories: catalog.memories.clone(),
            file_writes: catalog.file_writes.clone(),
        };
        let changes = catalog.sessions.changes().clone();
        Script { tables, changes, sessions: Sessions::Sqlite(self.store.clone()), lines: Vec::new() }
    }
}

/// A node with the tables in PostgreSQL, which owns all agents of a script.
pub(super) struct PostgresHome {
    pub(super) database: Database,
    pub(super) journal: PostgresJournal,
}

impl PostgresHome {
    /// Starts a node; `None` if PostgreSQL or the pooler is not installed.
    pub(super) async fn open(pooler: Option<PoolMode>) -> Result<Option<Self>> {
        let Some(database) = Database::create().await? else { return Ok(None) };
        let port = match pooler {
            Some(mode) => database.port_through(mode)?,
            None => Some(database.port()),
        };
        match port {
            Some(port) => Ok(Some(Self::open_at(database, port).await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn open_at(database: Database, port: u16) -> Result<Self> {
        let (journal, _) = open_at(&database, port, "a").await?;
        for agent in AGENTS {
            claim(&journal, agent).await?;
        }
        Ok(Self { database, journal })
    }

    pub(super) async fn script(&self) -> Result<Script> {
        let (tables, changes) = tables_of(&self.journal);
        Ok(Script { tables, changes, sessions: Sessions::Postgres(self.database.connect().await?), lines: Vec::new() })
    }
}

/// Fails if two scripts have noted different results.
pub(super) fn assert_same(sqlite: &Script, postgres: &Script, what: &impl Debug) {
    assert!(sqlite.lines.len() > 2);
    for (place, (sqlite, postgres)) in sqlite.lines.iter().zip(&postgres.lines).enumerate() {
        assert_eq!(sqlite, postgres, "{what:?}, line {place}");
    }
    assert_eq!(sqlite.lines.len(), postgres.lines.len(), "{what:?}");
}

/// Runs the same scripts against the tables of both databases, PostgreSQL reached directly and through pgbouncer.
macro_rules! same_in_both {
    ($($name:ident = $script:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() -> chorus_tests::postgres::Result {
            use chorus_tests::pgbouncer::PoolMode;
            use $crate::cluster::catalog::both::{PostgresHome, SqliteHome, assert_same};

            let home = SqliteHome::open()?;
            let mut sqlite = home.script();
            $script(&mut sqlite).await?;
            for pooler in [None, Some(PoolMode::Transaction), Some(PoolMode::Session)] {
                let Some(node) = PostgresHome::open(pooler).await? else { return Ok(()) };
                let mut postgres = node.script().await?;
                $script(&mut postgres).await?;
                assert_same(&sqlite, &postgres, &pooler);
            }
            Ok(())
        })*
    };
}
pub(super) use same_in_both;
