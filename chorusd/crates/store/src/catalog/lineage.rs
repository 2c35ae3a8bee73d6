//! Parents of sessions, and the names of sessions.

use std::collections::HashMap;

use chorus_base::error::Result;
use chorus_journal::to_nanos;
use chorus_proto::{SessionHeader, Trigger};
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};
use serde::Deserialize;
use uuid::Uuid;

use super::SessionTable;

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
    /// The conversation of another program that it holds.
    #[serde(default)]
    pub source: Option<LineageSource>,
    /// Reason why the file cannot be read, if it cannot.
    #[serde(skip)]
    pub corrupt: Option<String>,
}

/// The field of a session's source that a tree needs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct LineageSource {
    pub ended_at: Timestamp,
}

/// The names of a session and of its agent.
#[derive(Debug, Clone, Deserialize)]
pub struct SessionName {
    pub agent_name: String,
    pub session_id: String,
}

/// Number of sessions after a time that are searched for the one that contains it.
const MAX_SESSIONS_SEARCHED: u32 = 20;

impl SessionTable {
    /// Lists all sessions of an agent.
    pub async fn lineage(&self, agents: Vec<Uuid>) -> Result<Vec<LineageRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached("SELECT header, corrupt FROM sessions WHERE agent_id = ?1")?;
                let mut all = Vec::new();
                for agent in agents {
                    let rows = statement.query_map([agent.as_bytes()], |row| {
                        let read: LineageRow = parse_header(row.get_ref(0)?.as_str()?)?;
                        Ok(LineageRow { corrupt: row.get(1)?, ..read })
                    })?;
                    for row in rows {
                        all.push(row?);
                    }
                }
                Ok(all)
            })
            .await
    }

    /// Returns the names of those of these sessions that exist, in one transaction.
    pub async fn names(&self, ids: Vec<Uuid>) -> Result<HashMap<Uuid, SessionName>> {
        self.db
            .reader
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

    /// Returns, for each agent and time, the name of the first session that was saved afterwards and contains that
    /// time.
    pub async fn names_at(&self, moments: Vec<(Uuid, Timestamp)>) -> Result<Vec<Option<String>>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT header FROM sessions WHERE agent_id = ?1 AND saved_at >= ?2 ORDER BY saved_at LIMIT ?3",
                )?;
                let holds = |header: &str, at: Timestamp| {
                    let header: SessionHeader = serde_json::from_str(header).ok()?;
                    (header.started_at <= at && header.trigger != Trigger::Import).then_some(header.session_id)
                };
                let mut found = Vec::with_capacity(moments.len());
                for (agent, at) in moments {
                    let mut rows = statement.query(params![agent.as_bytes(), to_nanos(at), MAX_SESSIONS_SEARCHED])?;
                    let mut name = None;
                    while let (None, Some(row)) = (&name, rows.next()?) {
                        let header: String = row.get(0)?;
                        name = holds(&header, at);
                    }
                    found.push(name);
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
