//! The newest sessions of agents and conversations, and the names that are taken.

use chorus_catalog::SessionRow;
use chorus_session::conversation::ConversationKey;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::session_rows::{COLUMNS, read_session};
use crate::sqlite::StoreResult;

/// Returns the `n`th newest session of a conversation, counted from 0.
pub(super) fn select_nth_newest(
    conn: &Connection,
    conversation: ConversationKey,
    n: u64,
) -> StoreResult<Option<SessionRow>> {
    // Greater numbers do not fit into SQLite, and no table has so many rows.
    let Ok(n) = i64::try_from(n) else { return Ok(None) };
    Ok(conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions WHERE agent_id = ?1 AND conversation_id IS ?2
             ORDER BY place DESC, rowid DESC LIMIT 1 OFFSET ?3"
        ))?
        .query_row(
            params![conversation.agent.as_bytes(), conversation.stored_id().map(Uuid::into_bytes), n],
            read_session,
        )
        .optional()?)
}

/// Returns the newest session of each agent; one index seek per agent.
pub(super) fn select_newest_of_each(conn: &Connection, agents: &[Uuid]) -> StoreResult<Vec<Option<SessionRow>>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE agent_id = ?1 ORDER BY place DESC, rowid DESC LIMIT 1"
    ))?;
    agents.iter().map(|agent| Ok(statement.query_row([agent.as_bytes()], read_session).optional()?)).collect()
}

/// Returns the ids of the conversations, other than `main`, under whose name `name` the agent has sessions.
pub(super) fn select_conversations_named(conn: &Connection, agent: Uuid, name: &str) -> StoreResult<Vec<Uuid>> {
    let mut statement = conn.prepare_cached(
        "SELECT DISTINCT conversation_id FROM sessions WHERE agent_id = ?1 AND conversation_id IS NOT NULL
             AND json_extract(header, '$.conversation.name') = ?2",
    )?;
    let id = |row: &Row<'_>| row.get(0).map(Uuid::from_bytes);
    let ids = statement.query_map(params![agent.as_bytes(), name], id)?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// Returns the agent's session names that are `base` or begin with `base-`.
pub(super) fn select_names_with_base(conn: &Connection, agent: Uuid, base: &str) -> StoreResult<Vec<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT session_id FROM sessions
         WHERE agent_id = ?1 AND (session_id = ?2 OR session_id BETWEEN ?2 || '-' AND ?2 || '.')",
    )?;
    Ok(statement.query_map(params![agent.as_bytes(), base], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
