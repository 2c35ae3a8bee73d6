//! Files of agents as rows that several nodes share: [`SharedAgentFiles`] on a real database.

mod conflicts;
mod faults;
mod hostile;
mod limits;
mod moves;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_catalog::AgentFileTable;
use chorus_clock::Clock;
use chorus_shared_files::SharedAgentFiles;
use chorus_store::{AgentDir, SharedFiles as _};
use chorus_store_postgres::PostgresJournal;
use chorus_tests::postgres::Database;
use tempfile::TempDir;
use uuid::Uuid;

use super::{Result, claim, open_at};

const AGENT: Uuid = Uuid::from_u128(0xa);

/// A node without a daemon, with the directory of the agent.
struct Node {
    journal: PostgresJournal,
    files: SharedAgentFiles,
    table: Arc<dyn AgentFileTable>,
    home: TempDir,
}

impl Node {
    async fn start(database: &Database, name: &str) -> Result<Self> {
        Self::start_at(database, database.port(), name).await
    }

    /// Starts one that reaches the database over a port.
    async fn start_at(database: &Database, port: u16, name: &str) -> Result<Self> {
        let journal = open_at(database, port, name).await?.0;
        let home = tempfile::tempdir()?;
        for folder in ["docs", "sessions", "workspace"] {
            fs::create_dir_all(home.path().join("agents/x").join(folder))?;
        }
        let (table, known) = (journal.agent_file_table(), home.path().join("db/agent-files"));
        let files = SharedAgentFiles::new(table.clone(), name.to_owned(), known, Clock::system());
        Ok(Self { journal, files, table, home })
    }

    fn of(&self) -> AgentDir {
        AgentDir { agent: AGENT, name: "x".to_owned(), dir: self.home.path().join("agents/x") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.of().dir.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result {
        let path = self.path(name);
        fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    /// Claims the agent and takes its files on, as for a request.
    async fn take_on(&self) -> Result {
        claim(&self.journal, AGENT).await?;
        Ok(self.files.take_on(self.of(), false).await?)
    }

    async fn store_edits(&self) -> Result {
        Ok(self.files.store_edits(self.of()).await?)
    }

    /// Stores what was edited, and gives the agent up.
    async fn hand_over(&self) -> Result {
        self.store_edits().await?;
        self.journal.release(AGENT).await?;
        Ok(())
    }

    /// The files of the agent with their texts, by name.
    fn texts(&self) -> Result<Vec<(String, String)>> {
        let dir = self.of().dir;
        let mut found = Vec::new();
        let mut folders = vec![dir.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(&dir)?.to_string_lossy().into_owned();
                    found.push((name, fs::read_to_string(entry.path()).unwrap_or_default()));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The paths of the rows with their versions.
    async fn versions(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.table.list(AGENT).await?.into_iter().map(|row| (row.path, row.version)).collect())
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}
