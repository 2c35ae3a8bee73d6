//! The catalog in PostgreSQL: its tables against those in SQLite, and under faults.

mod agents;
mod approvals;
mod audit;
mod both;
mod capture;
mod discord;
mod faults;
mod fences;
mod file_writes;
mod imported_usage;
mod memories;
mod rows;
mod schedules;
mod session_faults;
mod session_rows;
mod session_script;
mod sessions;
mod settings;
mod tasks;
mod tool_exports;
mod usage;

use std::sync::Arc;

use chorus_base::Durability;
use chorus_catalog::{AgentRow, SessionTable, SummaryQueue};
use chorus_proto::AgentStatus;
use chorus_store::Store;
use chorus_store_postgres::PostgresJournal;
use chorus_tests::postgres::Database;
use tempfile::TempDir;
use uuid::Uuid;

use super::{Result, at};

/// The tables of one database.
#[derive(Debug, Clone)]
struct Tables {
    sessions: Arc<dyn SessionTable>,
    summaries: Arc<dyn SummaryQueue>,
}

impl Tables {
    fn of_postgres(journal: &PostgresJournal) -> Self {
        Self { sessions: journal.session_table(Arc::default()), summaries: journal.summary_queue() }
    }
}

/// A store in an empty home.
struct SqliteHome {
    _home: TempDir,
    store: Store,
}

impl SqliteHome {
    fn create() -> Result<Self> {
        let home = tempfile::tempdir()?;
        let store = open_sqlite(&home)?;
        Ok(Self { _home: home, store })
    }

    fn tables(&self) -> Tables {
        let catalog = &self.store.catalog;
        Tables { sessions: catalog.sessions.clone(), summaries: catalog.summary_queue.clone() }
    }

    async fn add_agent(&self, id: Uuid, status: AgentStatus) -> Result {
        let row = AgentRow {
            id,
            name: id.to_string(),
            status,
            created_at: at(0),
            dir: format!("agents/{id}"),
            config: "{}".to_owned(),
            stamp: String::new(),
            sessions: 0,
        };
        Ok(self.store.catalog.agents.upsert(row).await?)
    }
}

/// Adds the row of an agent.
async fn add_agent(database: &Database, id: Uuid, status: AgentStatus) -> Result {
    let client = database.connect().await?;
    let status = if status == AgentStatus::Active { "active" } else { "destroyed" };
    let sql = "INSERT INTO agents (id, name, status, created_at, dir, config, stamp)
         VALUES ($1, $2, $3, 0, 'agents/a', '{}', '')";
    client.execute(sql, &[&id, &id.to_string(), &status]).await?;
    Ok(())
}

/// Opens the databases of a home.
fn open_sqlite(home: &TempDir) -> Result<Store> {
    std::fs::create_dir(home.path().join("db"))?;
    let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
    let on_fatal: chorus_store::OnFatal = Arc::new(|_| ());
    Ok(Store::open(home.path(), Durability::Always, &on_fatal, at(0), redactor)?)
}
