//! Parents of sessions, and the names of sessions.

use std::collections::HashMap;

use chorus_catalog::{LineageRow, MAX_SESSIONS_SEARCHED, SessionName};
use chorus_journal::to_nanos;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Deserialize;
use uuid::Uuid;

use crate::sqlite::StoreResult;

/// Lists all sessions of these agents.
pub(super) fn select_lineage(conn: &Connection, agents: &[Uuid]) -> StoreResult<Vec<LineageRow>> {
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
}

/// Returns the names of those of these sessions that exist, in one transaction.
pub(super) fn select_names(conn: &Connection, ids: &[Uuid]) -> StoreResult<HashMap<Uuid, SessionName>> {
    let reading = conn.unchecked_transaction()?;
    let mut statement = reading.prepare_cached("SELECT header FROM sessions WHERE id = ?1")?;
    let mut found = HashMap::new();
    for id in ids {
        let header = |row: &Row<'_>| parse_header(row.get_ref(0)?.as_str()?);
        if let Some(named) = statement.query_row([id.as_bytes()], header).optional()? {
            found.insert(*id, named);
        }
    }
    Ok(found)
}

/// Returns, for each agent and time, the name of the first session that was saved afterwards and contains that time.
pub(super) fn select_names_at(conn: &Connection, moments: &[(Uuid, Timestamp)]) -> StoreResult<Vec<Option<String>>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT header FROM sessions WHERE agent_id = ?1 AND saved_at >= ?2 ORDER BY saved_at
         LIMIT {MAX_SESSIONS_SEARCHED}"
    ))?;
    let mut found = Vec::with_capacity(moments.len());
    for (agent, at) in moments {
        let mut rows = statement.query(params![agent.as_bytes(), to_nanos(*at)])?;
        let mut name = None;
        while let (None, Some(row)) = (&name, rows.next()?) {
            let header: String = row.get(0)?;
            name = SessionName::if_contains(&header, *at);
        }
        found.push(name);
    }
    Ok(found)
}

fn parse_header<'a, T: Deserialize<'a>>(header: &'a str) -> rusqlite::Result<T> {
    let failure =
        |e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::<serde_json::Error>::new(e));
    serde_json::from_str(header).map_err(failure)
}
