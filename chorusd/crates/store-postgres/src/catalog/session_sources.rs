//! Finds the sessions that hold a conversation of another program.

use std::collections::{HashMap, HashSet};

use chorus_base::error::Result;
use chorus_catalog::{MAX_REVISIONS, SessionRow};
use chorus_journal::to_nanos;
use jiff::Timestamp;
use uuid::Uuid;

use super::database::CatalogDb;
use super::session_rows::{COLUMNS, read_sessions};
use crate::rows::count;

pub(super) async fn list_of_source(db: &CatalogDb, program: String, conversation: String) -> Result<Vec<SessionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s WHERE source_program = $1 AND source_conversation = $2
         ORDER BY source_revision DESC, serial DESC LIMIT {MAX_REVISIONS}"
    );
    read_sessions(&db.read(&sql, &[&program, &conversation]).await?)
}

pub(super) async fn list_without_source(db: &CatalogDb, started_at: Timestamp) -> Result<Vec<SessionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s WHERE source_program IS NULL AND imported AND started_at = $1
         ORDER BY serial DESC LIMIT {MAX_REVISIONS}"
    );
    read_sessions(&db.read(&sql, &[&to_nanos(started_at)]).await?)
}

pub(super) async fn list_without_source_by_slug(db: &CatalogDb, slug: String) -> Result<Vec<SessionRow>> {
    // Materialized, so that the rows are found by their slug, not from the newest row on.
    let sql = format!(
        "WITH found AS MATERIALIZED (
             SELECT * FROM sessions WHERE source_program IS NULL AND imported AND slug = $1
             UNION ALL SELECT * FROM sessions
                 WHERE source_program IS NULL AND imported AND slug >= $1::text || '-' AND slug <= $1::text || '.')
         SELECT {COLUMNS} FROM found s ORDER BY serial DESC LIMIT {MAX_REVISIONS}"
    );
    read_sessions(&db.read(&sql, &[&slug]).await?)
}

pub(super) async fn list_programs(db: &CatalogDb) -> Result<Vec<String>> {
    // From one program to the next in the index, instead of over all sessions.
    let sql = "WITH RECURSIVE programs AS (
             SELECT min(source_program) AS name FROM sessions WHERE source_program > ''
             UNION ALL
             SELECT (SELECT min(source_program) FROM sessions WHERE source_program > programs.name)
             FROM programs WHERE name IS NOT NULL)
         SELECT name FROM programs WHERE name IS NOT NULL ORDER BY name";
    Ok(db.read(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

pub(super) async fn identities_of_agent(db: &CatalogDb, agent: Uuid) -> Result<Vec<(String, String)>> {
    let sql = "SELECT coalesce(source_program, 'chorus'), coalesce(source_conversation, id::text)
         FROM sessions WHERE agent_id = $1";
    Ok(db.read(sql, &[&agent]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

pub(super) async fn count_by_program(db: &CatalogDb) -> Result<HashMap<String, (u64, u64)>> {
    // The number of messages is that of the row with the highest revision.
    let sql = "SELECT source_program, count(*), sum(messages)::bigint FROM (
             SELECT DISTINCT ON (source_program, source_conversation) source_program, messages
             FROM sessions
             WHERE source_program IS NOT NULL AND agent_id IN (SELECT id FROM agents WHERE status = 'active')
             ORDER BY source_program DESC, source_conversation DESC, source_revision DESC, serial DESC) newest
         GROUP BY source_program";
    let rows = db.read_once(sql, &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), (count(row, 1), count(row, 2)))).collect())
}

pub(super) async fn ids_with_source(db: &CatalogDb) -> Result<HashSet<Uuid>> {
    let sql = "SELECT id FROM sessions
         WHERE source_program IS NOT NULL AND agent_id IN (SELECT id FROM agents WHERE status = 'active')";
    Ok(db.read_once(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}
