//! Reads and writes rows of sessions.

use chorus_base::error::Error;
use chorus_catalog::{NewSession, SessionPlacement, SessionRow};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::SessionHeader;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::short_ids::select_short_ids;
use super::{imported_usage, summary_queue};
use crate::sqlite::{StoreError, StoreResult};

pub(super) const COLUMNS: &str = "header, sha256, file_stamp, corrupt, last_used_at, place";

pub(super) fn read_session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let header = row.get_ref(0)?.as_str()?;
    Ok(SessionRow {
        header: serde_json::from_str(header)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e)))?,
        sha256: row.get(1)?,
        file_stamp: row.get(2)?,
        corrupt: row.get(3)?,
        last_used_at: from_nanos(row.get(4)?),
        place: row.get(5)?,
        body: None,
    })
}

/// Returns the session with this id.
pub(super) fn select(conn: &Connection, id: Uuid) -> StoreResult<Option<SessionRow>> {
    Ok(conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?
        .query_row([id.as_bytes()], read_session)
        .optional()?)
}

/// Returns the sessions with these ids, as far as they exist.
pub(super) fn select_all(conn: &Connection, ids: &[Uuid]) -> StoreResult<Vec<SessionRow>> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        rows.extend(statement.query_row([id.as_bytes()], read_session).optional()?);
    }
    Ok(rows)
}

/// Inserts a new session, with what is stored in the same commit; returns its short id.
pub(super) fn insert_new(conn: &Connection, new: NewSession) -> StoreResult<String> {
    let NewSession { mut row, placement, summary, usage, is_one_of_many: _ } = new;
    // A scan or a rebuild may have found the file first and inserted a row for this session.
    delete_exact(conn, &row.header)?;
    if placement == SessionPlacement::Last {
        row.place = row.place.max(next_place(conn)?);
    }
    insert(conn, &row)?;
    if let Some(summary) = summary {
        summary_queue::enqueue(conn, row.header.id, summary)?;
    }
    let short_id = select_short_ids(conn, &[row.header.id])?.pop().map(|short| short.text).unwrap_or_default();
    if let Some(usage) = usage {
        imported_usage::record(conn, row.header.id, &usage)?;
    }
    Ok(short_id)
}

pub(super) fn delete_exact(conn: &Connection, session: &SessionHeader) -> StoreResult<()> {
    conn.prepare_cached("DELETE FROM sessions WHERE id = ?1 AND agent_id = ?2 AND session_id = ?3")?
        .execute(params![session.id.as_bytes(), session.agent_id.as_bytes(), session.session_id])?;
    Ok(())
}

/// The first place after all sessions.
fn next_place(conn: &Connection) -> StoreResult<i64> {
    let last: Option<i64> = conn.prepare_cached("SELECT max(place) FROM sessions")?.query_row([], |row| row.get(0))?;
    Ok(last.map_or(i64::MIN, |last| last.saturating_add(1)))
}

pub(super) fn insert(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let header = serde_json::to_string(&row.header).map_err(|e| Error::internal(e.to_string()))?;
    let id = row.header.id;
    conn.prepare_cached(
        "INSERT INTO sessions (id, agent_id, session_id, saved_at, header, sha256, file_stamp, corrupt, last_used_at,
             place, conversation_id, source_program, source_conversation, project)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        id.as_bytes(),
        row.header.agent_id.as_bytes(),
        row.header.session_id,
        to_nanos(row.header.saved_at),
        header,
        row.sha256,
        row.file_stamp,
        row.corrupt,
        to_nanos(row.last_used_at),
        row.place,
        row.header.conversation.as_ref().map(|conversation| conversation.id.into_bytes()),
        row.header.source.as_ref().map(|source| &source.program),
        row.header.source.as_ref().map(|source| &source.conversation),
        row.header.source.as_ref().and_then(|source| source.project.as_ref()),
    ])
    .map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::from(row.name_taken_error()),
        _ => e.into(),
    })?;
    insert_tags(conn, row)
}

/// Inserts the row of a file that was found.
pub(super) fn upsert(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let known = conn
        .prepare_cached(
            "SELECT 1 FROM sessions
             WHERE id = ?1 AND agent_id = ?2 AND session_id = ?3 AND sha256 = ?4 AND file_stamp = ?5 AND corrupt IS ?6",
        )?
        .exists(params![
            row.header.id.as_bytes(),
            row.header.agent_id.as_bytes(),
            row.header.session_id,
            row.sha256,
            row.file_stamp,
            row.corrupt
        ])?;
    if known {
        return Ok(());
    }
    conn.prepare_cached("DELETE FROM sessions WHERE id = ?1 OR (agent_id = ?2 AND session_id = ?3)")?
        .execute(params![row.header.id.as_bytes(), row.header.agent_id.as_bytes(), row.header.session_id])?;
    insert(conn, row)
}

/// Deletes the row of a session.
pub(super) fn delete(conn: &Connection, id: Uuid) -> StoreResult<()> {
    conn.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id.as_bytes()])?;
    Ok(())
}

/// Updates header, stamp and corruption of a session's row.
pub(super) fn update(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let header = serde_json::to_string(&row.header).map_err(|e| Error::internal(e.to_string()))?;
    let (id, source) = (row.header.id, row.header.source.as_ref());
    conn.prepare_cached(
        "UPDATE sessions SET header = ?2, file_stamp = ?3, corrupt = ?4, source_program = ?5, source_conversation = ?6,
             project = ?7
         WHERE id = ?1",
    )?
    .execute(params![
        id.as_bytes(),
        header,
        row.file_stamp,
        row.corrupt,
        source.map(|source| &source.program),
        source.map(|source| &source.conversation),
        source.and_then(|source| source.project.as_ref()),
    ])?;
    conn.prepare_cached("DELETE FROM session_tags WHERE id = ?1")?.execute([id.as_bytes()])?;
    insert_tags(conn, row)
}

fn insert_tags(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let mut tag = conn.prepare_cached("INSERT OR IGNORE INTO session_tags (id, tag) VALUES (?1, ?2)")?;
    for name in &row.header.tags {
        tag.execute(params![row.header.id.as_bytes(), name])?;
    }
    Ok(())
}

/// Updates the row of a session that has grown. Its last use stays.
pub(super) fn replace(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    conn.prepare_cached("UPDATE sessions SET sha256 = ?2, place = ?3 WHERE id = ?1")?.execute(params![
        row.header.id.as_bytes(),
        row.sha256,
        row.place
    ])?;
    update(conn, row)
}

/// Gives a session to the agent that its new row names, with its usage.
pub(super) fn move_to_agent(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let (id, agent) = (row.header.id, row.header.agent_id);
    delete(conn, id)?;
    insert(conn, row)?;
    conn.prepare_cached("UPDATE imported_calls SET agent_id = ?2 WHERE session_id = ?1")?
        .execute([id.as_bytes(), agent.as_bytes()])?;
    Ok(())
}
