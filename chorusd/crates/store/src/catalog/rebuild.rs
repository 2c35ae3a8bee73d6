//! Rebuilds the tables of agents and sessions from the files.

use chorus_base::error::Result;
use chorus_catalog::{AgentRow, SessionRow};
use chorus_session::file::derived_id;
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::{SqliteCatalog, agents, session_rows, summary_queue};
use crate::sqlite::StoreResult;

/// Contents of the agents' directories.
#[derive(Debug, Default)]
pub struct DirectoryScan {
    /// Agents whose sessions are listed here.
    pub agent_ids: Vec<Uuid>,
    /// Rows of those with a valid agent.json.
    pub agents: Vec<AgentRow>,
    /// All their sessions, oldest first. If two have the same id, the first one keeps it.
    pub sessions: Vec<SessionRow>,
}

impl SqliteCatalog {
    /// See [`Store::rebuild_catalog`](crate::Store::rebuild_catalog).
    pub(crate) async fn rebuild(&self, truth: DirectoryScan, mark: i64) -> Result<()> {
        self.writer.submit(move |conn| rebuild(conn, truth, mark)).await
    }

    /// See [`Store::newest_session_row`](crate::Store::newest_session_row).
    pub(crate) async fn newest_session_row(&self) -> Result<i64> {
        self.reader
            .submit(|conn| Ok(conn.query_row("SELECT coalesce(max(rowid), 0) FROM sessions", [], |row| row.get(0))?))
            .await
    }
}

fn rebuild(conn: &Connection, truth: DirectoryScan, mark: i64) -> StoreResult<()> {
    // These rows are deleted together with the sessions that are rebuilt.
    let wanted = summary_queue::list_pending(conn)?;
    for agent in &truth.agent_ids {
        conn.prepare_cached("DELETE FROM sessions WHERE agent_id = ?1 AND rowid <= ?2")?
            .execute(params![agent.as_bytes(), mark])?;
    }
    for row in &truth.agents {
        agents::upsert(conn, row)?;
    }
    for mut row in truth.sessions {
        let (agent, name) = (row.header.agent_id, row.header.session_id.clone());
        let newer = conn
            .prepare_cached("SELECT 1 FROM sessions WHERE agent_id = ?1 AND session_id = ?2")?
            .query_row(params![agent.as_bytes(), name], |_| Ok(()))
            .optional()?;
        if newer.is_some() {
            continue;
        }
        let taken = conn
            .prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?
            .query_row([row.header.id.as_bytes()], |_| Ok(()))
            .optional()?;
        if taken.is_some() {
            row.header.id = derived_id(&format!("{agent}/{name}"));
        }
        session_rows::insert(conn, &row)?;
    }
    for (id, wanted) in wanted {
        summary_queue::enqueue(conn, id, wanted)?;
    }
    // The counters are only an index, too.
    conn.execute_batch(
        "UPDATE agents SET sessions = (SELECT count(*) FROM sessions WHERE agent_id = agents.id);
         UPDATE counters SET value = (SELECT count(*) FROM sessions) WHERE name = 'sessions'",
    )?;
    Ok(())
}
