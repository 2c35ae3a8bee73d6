//! Parents of the sessions of an agent.

use std::collections::HashMap;

use chorus_base::error::Result;
use chorus_proto::Trigger;
use jiff::Timestamp;
use rusqlite::OptionalExtension as _;
use serde::Deserialize;
use uuid::Uuid;

use super::Catalog;

/// A session with the fields that a session tree shows.
#[derive(Debug, Clone, Deserialize)]
pub struct LineageRow {
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
    /// Reason why the file cannot be read, if it cannot.
    #[serde(skip)]
    pub corrupt: Option<String>,
}

/// The names of a session and of its agent.
#[derive(Debug, Clone, Deserialize)]
pub struct SessionName {
    pub agent_name: String,
    pub session_id: String,
}

impl Catalog {
    /// Lists all sessions of an agent.
    pub async fn lineage(&self, agent: Uuid) -> Result<Vec<LineageRow>> {
        self.reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached("SELECT header, corrupt FROM sessions WHERE agent_id = ?1")?;
                let rows = statement.query_map([agent.as_bytes()], |row| {
                    let read: LineageRow = parse_header(row.get_ref(0)?.as_str()?)?;
                    Ok(LineageRow { corrupt: row.get(1)?, ..read })
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the names of those of these sessions that exist, in one transaction.
    pub async fn session_names(&self, ids: Vec<Uuid>) -> Result<HashMap<Uuid, SessionName>> {
        self.reader
            .submit(move |conn| {
                let reading = conn.unchecked_transaction()?;
                let mut statement = reading.prepare_cached("SELECT header FROM sessions WHERE id = ?1")?;
                let mut found = HashMap::new();
                for id in ids {
                    let header = |row: &rusqlite::Row<'_>| parse_header(row.get_ref(0)?.as_str()?);
                    if let Some(named) = statement.query_row([id.as_bytes()], header).optional()? {
                        found.insert(id, named);
                    }
                }
                Ok(found)
            })
            .await
    }
}

fn parse_header<'a, T: Deserialize<'a>>(header: &'a str) -> rusqlite::Result<T> {
    let failure =
        |e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::<serde_json::Error>::new(e));
    serde_json::from_str(header).map_err(failure)
}
