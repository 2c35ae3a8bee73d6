//! What hangs from what among the sessions of an agent.

use chorus_proto::Trigger;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::Catalog;
use crate::failure::Result;

/// A session, as far as a tree of them shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct Branching {
    pub id: Uuid,
    pub session_id: String,
    pub saved_at: Timestamp,
    pub started_at: Timestamp,
    pub trigger: Trigger,
    pub message_count: u64,
    pub description: Option<String>,
    pub summary: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub parent_id: Option<Uuid>,
    /// Why the file cannot be read, where it cannot.
    #[serde(skip)]
    pub corrupt: Option<String>,
}

impl Catalog {
    /// All sessions of an agent.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn branching(&self, agent: Uuid) -> Result<Vec<Branching>> {
        self.reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached("SELECT header, corrupt FROM sessions WHERE agent_id = ?1")?;
                let rows = statement.query_map([agent.as_bytes()], |row| {
                    let read: Branching = serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|e| {
                        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e))
                    })?;
                    Ok(Branching { corrupt: row.get(1)?, ..read })
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}
