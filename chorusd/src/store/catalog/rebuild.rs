//! Making the tables of agents and sessions anew.

use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::Catalog;
use super::agents::{self, AgentRow};
use super::sessions::{self, SessionRow};
use super::summary_queue;
use crate::error::Result;
use crate::session::file::derived_id;

/// What the directories say.
#[derive(Debug, Default)]
pub struct DirectoryScan {
    /// Agents whose sessions are listed here.
    pub agent_ids: Vec<Uuid>,
    /// Their rows, where agent.json can be used.
    pub agents: Vec<AgentRow>,
    /// All their sessions, oldest first; of two with one id the first keeps it.
    pub sessions: Vec<SessionRow>,
}

impl Catalog {
    /// A mark: rows of sessions that come after it are newer than what is read from now on.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn newest_session_rowid(&self) -> Result<i64> {
        self.reader
            .submit(|conn| Ok(conn.query_row("SELECT coalesce(max(rowid), 0) FROM sessions", [], |row| row.get(0))?))
            .await
    }

    /// Puts `truth` in place of what the tables say of its agents, in one commit. Rows after `mark` stay, and so do
    /// settings and destroyed agents.
    ///
    /// # Errors
    /// A database that cannot be written; nothing is changed then.
    pub async fn rebuild(&self, truth: DirectoryScan, mark: i64) -> Result<()> {
        self.writer.submit(move |conn| rebuild(conn, truth, mark)).await
    }

    /// Names of the agent's sessions whose files cannot be read.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn corrupt_sessions(&self, agent: Uuid) -> Result<Vec<String>> {
        self.reader
            .submit(move |conn| {
                let mut statement =
                    conn.prepare_cached("SELECT session_id FROM sessions WHERE agent_id = ?1 AND corrupt IS NOT NULL")?;
                let names =
                    statement.query_map([agent.as_bytes()], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                Ok(names)
            })
            .await
    }
}

fn rebuild(conn: &Connection, truth: DirectoryScan, mark: i64) -> Result<()> {
    // They go with the rows that are made anew.
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
        sessions::insert(conn, &row)?;
    }
    for (id, wanted) in wanted {
        summary_queue::enqueue(conn, id, wanted)?;
    }
    // The counters too are only an index.
    conn.execute_batch(
        "UPDATE agents SET sessions = (SELECT count(*) FROM sessions WHERE agent_id = agents.id);
         UPDATE counters SET value = (SELECT count(*) FROM sessions) WHERE name = 'sessions'",
    )?;
    Ok(())
}
