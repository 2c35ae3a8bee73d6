//! Finds the sessions that hold a conversation of another program.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use jiff::Timestamp;
use rusqlite::params;
use uuid::Uuid;

use super::imported_usage::{self, ImportedUsage};
use super::session_listing::project_condition;
use super::sessions::{COLUMNS, ProjectFilter, SessionRow, SessionTable, insert, read_session};

/// The limit on sessions of one conversation that are looked at.
const MAX_REVISIONS: u64 = 16;

impl SessionTable {
    /// Returns the sessions that hold a conversation, the newest revision first, at most 16.
    pub async fn list_of_source(&self, program: String, conversation: String) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions WHERE source_program = ?1 AND source_conversation = ?2
                     ORDER BY json_extract(header, '$.source.revision') DESC, rowid DESC LIMIT ?3"
                ))?;
                let rows = statement.query_map(params![program, conversation, MAX_REVISIONS], read_session)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the sessions without a source that an import has saved and whose conversation began at this time, newest
    /// first, at most 16.
    pub async fn list_without_source(&self, started_at: Timestamp) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions
                     WHERE source_program IS NULL AND json_extract(header, '$.trigger') = 'import'
                         AND json_extract(header, '$.started_at') = ?1
                     ORDER BY rowid DESC LIMIT ?2"
                ))?;
                let rows = statement.query_map(params![started_at.to_string(), MAX_REVISIONS], read_session)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the sessions without a source that an import has saved under a name with this slug, newest first, at most 16.
    pub async fn list_without_source_by_slug(&self, slug: String) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                // A name is `<YYYY-MM-DD>_<slug>`, with a number behind it if it was taken.
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions
                     WHERE source_program IS NULL
                         AND (substr(session_id, 12) = ?1 OR substr(session_id, 12) BETWEEN ?1 || '-' AND ?1 || '.')
                         AND json_extract(header, '$.trigger') = 'import'
                     ORDER BY rowid DESC LIMIT ?2"
                ))?;
                let rows = statement.query_map(params![slug, MAX_REVISIONS], read_session)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the names of all programs whose conversations sessions hold, in order.
    pub async fn source_programs(&self) -> Result<Vec<String>> {
        self.db
            .reader
            .submit(|conn| {
                // From one program to the next in the index, instead of over all sessions.
                let mut statement = conn.prepare_cached(
                    "SELECT min(source_program) FROM sessions WHERE source_program IS NOT NULL AND source_program > ?1",
                )?;
                let mut programs: Vec<String> = Vec::new();
                let next = |after: &str, statement: &mut rusqlite::CachedStatement<'_>| {
                    statement.query_row([after], |row| row.get::<_, Option<String>>(0))
                };
                while let Some(program) = next(programs.last().map_or("", String::as_str), &mut statement)? {
                    programs.push(program);
                }
                Ok(programs)
            })
            .await
    }

    /// Returns the identities of the conversations that the sessions of an agent hold: the program and the id there, which
    /// for its own sessions are `chorus` and the session's id.
    pub async fn identities_of_agent(&self, agent: Uuid) -> Result<Vec<(String, String)>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT source_program, source_conversation, id FROM sessions WHERE agent_id = ?1",
                )?;
                let identities = statement.query_map([agent.as_bytes()], |row| {
                    let (program, conversation): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
                    let id = row.get(2).map(Uuid::from_bytes)?;
                    Ok(program.zip(conversation).unwrap_or_else(|| ("chorus".to_owned(), id.to_string())))
                })?;
                Ok(identities.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Counts the conversations of each program that agents hold, and their messages: those of the newest revision.
    pub async fn count_by_program(&self) -> Result<HashMap<String, (u64, u64)>> {
        self.db
            .reader
            .submit(|conn| {
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
                let counts = statement.query_map([], |row| {
                    Ok((row.get(0)?, (row.get(1)?, row.get::<_, Option<u64>>(2)?.unwrap_or(0))))
                })?;
                Ok(counts.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the ids of the sessions of other programs' conversations that agents hold.
    pub async fn ids_with_source(&self) -> Result<HashSet<Uuid>> {
        self.db
            .reader
            .submit(|conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT id FROM sessions WHERE source_program IS NOT NULL
                         AND agent_id IN (SELECT id FROM agents WHERE status = 'active')",
                )?;
                let ids = statement.query_map([], |row| row.get(0).map(Uuid::from_bytes))?;
                Ok(ids.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Gives a session to the agent that its new row names, with its usage.
    pub fn move_to_agent(&self, row: SessionRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let (id, agent) = (row.header.id, row.header.agent_id);
            conn.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id.as_bytes()])?;
            insert(conn, &row)?;
            conn.prepare_cached("UPDATE imported_calls SET agent_id = ?2 WHERE session_id = ?1")?
                .execute([id.as_bytes(), agent.as_bytes()])?;
            Ok(())
        })
    }

    /// Returns the ids of all sessions of a project.
    pub async fn ids_of_project(&self, project: ProjectFilter) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(move |conn| {
                let (condition, values) = project_condition(&project);
                let mut statement = conn.prepare_cached(&format!("SELECT id FROM sessions WHERE {condition}"))?;
                let ids =
                    statement.query_map(rusqlite::params_from_iter(values), |row| row.get(0).map(Uuid::from_bytes))?;
                Ok(ids.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Replaces the row of a session that has grown, and its usage, if that is given. Its last use stays.
    pub fn replace(
        &self,
        row: SessionRow,
        usage: Option<Arc<ImportedUsage>>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let header = serde_json::to_string(&row.header).map_err(|e| Error::internal(e.to_string()))?;
            let id = row.header.id;
            conn.prepare_cached("UPDATE sessions SET sha256 = ?2, place = ?3 WHERE id = ?1")?.execute(params![
                id.as_bytes(),
                row.sha256,
                row.place
            ])?;
            super::session_purge::update_header(conn, &row, &header)?;
            usage.map_or(Ok(()), |usage| imported_usage::record(conn, id, &usage))
        })
    }
}
