//! The table `conversations`: the conversations of agents beside `main`, which has no row.

use chorus_journal::{ConversationRow, from_nanos, to_nanos};
use chorus_session::conversation::ConversationKey;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::contexts_table::read_uuid;
use crate::sqlite::StoreResult;

/// Inserts the row, or replaces the one with its id. If it is selected, no other conversation of the agent stays so.
pub(super) fn upsert(conn: &Connection, row: &ConversationRow) -> StoreResult<()> {
    let (id, agent) = (row.key.id.as_bytes(), row.key.agent.as_bytes());
    if row.is_selected {
        deselect(conn, row.key.agent)?;
    }
    conn.prepare_cached(
        "INSERT INTO conversations (id, agent_id, name, origin, title, created_at, closed_at, selected, worktree)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (id) DO UPDATE SET name = ?3, origin = ?4, title = ?5, closed_at = ?7, selected = ?8, worktree = ?9",
    )?
    .execute(params![
        id,
        agent,
        row.name,
        row.origin,
        row.title,
        to_nanos(row.created_at),
        row.closed_at.map(to_nanos),
        row.is_selected,
        row.worktree
    ])?;
    Ok(())
}

/// Makes `main` the selected conversation of an agent.
pub(super) fn deselect(conn: &Connection, agent: Uuid) -> StoreResult<()> {
    conn.prepare_cached("UPDATE conversations SET selected = 0 WHERE agent_id = ?1 AND selected")?
        .execute([agent.as_bytes()])?;
    Ok(())
}

/// Lists all conversations of all agents.
pub(super) fn list(conn: &Connection) -> StoreResult<Vec<ConversationRow>> {
    let mut statement = conn.prepare(
        "SELECT id, agent_id, name, origin, title, created_at, closed_at, selected, worktree FROM conversations",
    )?;
    let rows = statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ConversationRow> {
    let agent = read_uuid(row, 1)?.unwrap_or_default();
    Ok(ConversationRow {
        key: ConversationKey::from_stored(agent, read_uuid(row, 0)?),
        name: row.get(2)?,
        origin: row.get(3)?,
        title: row.get(4)?,
        created_at: from_nanos(row.get(5)?),
        closed_at: row.get::<_, Option<i64>>(6)?.map(from_nanos),
        is_selected: row.get(7)?,
        worktree: row.get(8)?,
    })
}
