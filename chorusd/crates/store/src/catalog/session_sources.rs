//! Finds the sessions that hold a conversation of another program.

use std::collections::{HashMap, HashSet};

use chorus_catalog::{MAX_REVISIONS, ProjectFilter, SessionRow};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params_from_iter};
use uuid::Uuid;

use super::session_listing::project_condition;
use super::session_rows::{COLUMNS, read_session};
use crate::sqlite::StoreResult;

/// Returns the sessions that hold a conversation, the newest revision first.
pub(super) fn list_of_source(conn: &Connection, program: &str, conversation: &str) -> StoreResult<Vec<SessionRow>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE source_program = ?1 AND source_conversation = ?2
         ORDER BY json_extract(header, '$.source.revision') DESC, rowid DESC LIMIT {MAX_REVISIONS}"
    ))?;
    let rows = statement.query_map([program, conversation], read_session)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions without a source that an import has saved and whose conversation began at this time.
pub(super) fn list_without_source(conn: &Connection, started_at: Timestamp) -> StoreResult<Vec<SessionRow>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions
         WHERE source_program IS NULL AND json_extract(header, '$.trigger') = 'import'
             AND json_extract(header, '$.started_at') = ?1
         ORDER BY rowid DESC LIMIT {MAX_REVISIONS}"
    ))?;
    let rows = statement.query_map([started_at.to_string()], read_session)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions without a source that an import has saved under a name with this slug.
pub(super) fn list_without_source_by_slug(conn: &Connection, slug: &str) -> StoreResult<Vec<SessionRow>> {
    // A name is `<YYYY-MM-DD>_<slug>`, with a number behind it if it was taken.
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions
         WHERE source_program IS NULL
             AND (substr(session_id, 12) = ?1 OR substr(session_id, 12) BETWEEN ?1 || '-' AND ?1 || '.')
             AND json_extract(header, '$.trigger') = 'import'
         ORDER BY rowid DESC LIMIT {MAX_REVISIONS}"
    ))?;
    let rows = statement.query_map([slug], read_session)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the names of all programs whose conversations sessions hold, in order.
pub(super) fn list_programs(conn: &Connection) -> StoreResult<Vec<String>> {
    // From one program to the next in the index, instead of over all sessions.
    let mut statement = conn.prepare_cached(
        "SELECT min(source_program) FROM sessions WHERE source_program IS NOT NULL AND source_program > ?1",
    )?;
    let mut programs: Vec<String> = Vec::new();
    let next = |after: &str, statement: &mut CachedStatement<'_>| {
        statement.query_row([after], |row| row.get::<_, Option<String>>(0))
    };
    while let Some(program) = next(programs.last().map_or("", String::as_str), &mut statement)? {
        programs.push(program);
    }
    Ok(programs)
}

/// Returns the identities of the conversations that the sessions of an agent hold.
pub(super) fn identities_of_agent(conn: &Connection, agent: Uuid) -> StoreResult<Vec<(String, String)>> {
    let mut statement =
        conn.prepare_cached("SELECT source_program, source_conversation, id FROM sessions WHERE agent_id = ?1")?;
    let identities = statement.query_map([agent.as_bytes()], |row| {
        let (program, conversation): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
        let id = row.get(2).map(Uuid::from_bytes)?;
        Ok(program.zip(conversation).unwrap_or_else(|| ("chorus".to_owned(), id.to_string())))
    })?;
    Ok(identities.collect::<rusqlite::Result<_>>()?)
}

/// Counts the conversations of each program that agents hold, and their messages.
pub(super) fn count_by_program(conn: &Connection) -> StoreResult<HashMap<String, (u64, u64)>> {
    // The number of messages is that of the row with the highest revision.
    let mut statement = conn.prepare_cached(
        "SELECT source_program, count(*), sum(messages) FROM (
             SELECT source_program, json_extract(header, '$.message_count') AS messages,
                 max(json_extract(header, '$.source.revision'))
             FROM sessions
             WHERE source_program IS NOT NULL
                 AND agent_id IN (SELECT id FROM agents WHERE status = 'active')
             GROUP BY source_program, source_conversation)
         GROUP BY source_program",
    )?;
    let counts =
        statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get::<_, Option<u64>>(2)?.unwrap_or(0)))))?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

/// Returns the ids of the sessions of other programs' conversations that agents hold.
pub(super) fn ids_with_source(conn: &Connection) -> StoreResult<HashSet<Uuid>> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM sessions WHERE source_program IS NOT NULL
             AND agent_id IN (SELECT id FROM agents WHERE status = 'active')",
    )?;
    let ids = statement.query_map([], |row| row.get(0).map(Uuid::from_bytes))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// Returns the ids of all sessions of a project.
pub(super) fn ids_of_project(conn: &Connection, project: &ProjectFilter) -> StoreResult<Vec<Uuid>> {
    let (condition, values) = project_condition(project);
    let mut statement = conn.prepare_cached(&format!("SELECT id FROM sessions WHERE {condition}"))?;
    let ids = statement.query_map(params_from_iter(values), |row| row.get(0).map(Uuid::from_bytes))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
