//! What agents are to remember.

use jiff::Timestamp;
use rusqlite::params;
use uuid::Uuid;

use super::Catalog;
use crate::failure::Result;
use crate::store::journal::to_nanos;

/// Something to remember, on its way into the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    pub agent: Uuid,
    pub text: String,
    /// The file that it is about.
    pub path: Option<String>,
    pub at: Timestamp,
    /// On whose behalf.
    pub user: String,
}

/// Something remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pub text: String,
    pub path: Option<String>,
}

impl Catalog {
    /// Keeps it; it is on the disk when this returns.
    pub fn remember(&self, memory: NewMemory) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            conn.prepare_cached(
                "INSERT INTO memory (agent_id, text, path, created_at, user) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                memory.agent.as_bytes(),
                memory.text,
                memory.path,
                to_nanos(memory.at),
                memory.user
            ])?;
            Ok(())
        })
    }

    /// What each of these agents remembers, in the order asked: the newest `most`, the newest first.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn memories(&self, agents: Vec<Uuid>, most: usize) -> Result<Vec<Vec<Memory>>> {
        self.reader
            .submit(move |conn| {
                let reading = conn.unchecked_transaction()?;
                let mut statement = reading
                    .prepare_cached("SELECT text, path FROM memory WHERE agent_id = ?1 ORDER BY id DESC LIMIT ?2")?;
                agents
                    .iter()
                    .map(|agent| {
                        let rows = statement.query_map(params![agent.as_bytes(), most], |row| {
                            Ok(Memory { text: row.get(0)?, path: row.get(1)? })
                        })?;
                        Ok(rows.collect::<rusqlite::Result<_>>()?)
                    })
                    .collect()
            })
            .await
    }
}
