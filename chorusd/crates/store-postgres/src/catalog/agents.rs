//! Rows of agents.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{AgentRow, AgentTable, CatalogRead, CatalogWrite, MemoryRow, SessionChanges, confine_to_home};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::AgentStatus;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, refuse_nul};
use super::memories;
use crate::ownership::Grant;
use crate::rows::count;
use crate::statement::{Call, call};

const SELECT: &str = "SELECT id, name, status, created_at, dir, config, stamp, coalesce(counted.sessions, 0)
    FROM agents LEFT JOIN session_counts counted ON counted.agent_id = agents.id";

/// The table in PostgreSQL. A new agent is claimed before its row is inserted.
#[derive(Debug)]
pub(crate) struct PostgresAgentTable {
    pub(super) db: CatalogDb,
    pub(super) changes: Arc<SessionChanges>,
}

impl AgentTable for PostgresAgentTable {
    fn list(&self, destroyed: bool) -> CatalogRead<'_, Vec<AgentRow>> {
        Box::pin(async move {
            let filter = if destroyed { "" } else { "WHERE status = 'active'" };
            let sql = format!("{SELECT} {filter} ORDER BY name, created_at");
            Ok(self.db.read(&sql, &[]).await?.iter().map(read_agent).collect())
        })
    }

    fn list_by_id(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<AgentRow>> {
        Box::pin(async move {
            let sql = format!("{SELECT} WHERE id = ANY ($1)");
            Ok(self.db.read(&sql, &[&ids]).await?.iter().map(read_agent).collect())
        })
    }

    fn find(&self, name: String) -> CatalogRead<'_, Option<AgentRow>> {
        Box::pin(async move {
            let sql = format!("{SELECT} WHERE name = $1 AND status = 'active'");
            Ok(self.db.read(&sql, &[&name]).await?.first().map(read_agent))
        })
    }

    fn list_destroyed(&self) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move {
            let rows = self.db.read("SELECT id FROM agents WHERE status = 'destroyed'", &[]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn upsert(&self, row: AgentRow) -> CatalogWrite<()> {
        let changes = self.changes.clone();
        let id = row.id;
        self.db.write_then(self.grant(&row), vec![upsert(row)], move |rows| {
            // If the answer was lost, it may have changed something.
            if rows.and_then(<[Row]>::first).is_none_or(|row| row.get(0)) {
                changes.note_agent(id);
            }
        })
    }

    fn upsert_with_memories(&self, row: AgentRow, memories: Vec<MemoryRow>) -> CatalogWrite<Vec<(Uuid, String)>> {
        let write = Uuid::new_v4();
        let grant = self.grant(&row).and_then(|grant| {
            memories.iter().try_for_each(memories::check)?;
            Ok(grant)
        });
        let agents: Vec<Uuid> = memories.iter().map(|memory| memory.agent).collect();
        let (id, changes) = (row.id, self.changes.clone());
        let added = |agents: &[Uuid]| memories::added_call(write, agents.to_vec());
        let mut calls = vec![upsert(row)];
        calls.extend(memories.iter().map(|memory| memories::insert_call(memory.clone(), write)));
        calls.push(added(&agents));
        let stored = self.db.write_and_read(grant, calls, added(&agents), move |rows| {
            changes.note_agent(id);
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        });
        Box::pin(async move { stored.await.map_err(|failure| memories::explain_limit(failure, &memories)) })
    }

    fn mark_destroyed(&self, id: Uuid, at: Timestamp, dir: String, tombstones: Vec<String>) -> CatalogWrite<()> {
        let changes = self.changes.clone();
        let texts = tombstones.iter().map(String::as_str).chain([dir.as_str()]);
        let grant = self.db.grant(id).and_then(|grant| refuse_nul(texts).map(|()| grant));
        let mut calls = Vec::new();
        if !tombstones.is_empty() {
            let sql = "INSERT INTO capture_tombstones (conversation) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";
            calls.push(call!(sql, tombstones));
        }
        let sql = "UPDATE agents SET status = 'destroyed', destroyed_at = $2, dir = $3 WHERE id = $1
             RETURNING id";
        calls.push(call!(sql, id, to_nanos(at), dir));
        self.db.write_then(grant, calls, move |rows| note_changed(&changes, id, rows))
    }

    fn delete(&self, id: Uuid) -> CatalogWrite<()> {
        let changes = self.changes.clone();
        let calls = vec![call!("DELETE FROM agents WHERE id = $1 RETURNING id", id)];
        self.db.write_then(self.db.grant(id), calls, move |rows| note_changed(&changes, id, rows))
    }
}

impl PostgresAgentTable {
    fn grant(&self, row: &AgentRow) -> Result<Option<Grant>> {
        refuse_nul([&*row.name, &*row.dir, &*row.config, &*row.stamp])?;
        self.db.grant(row.id)
    }
}

/// Notes that an agent changed, for the index of sessions. `rows` are those that changed, `None` if the answer was lost.
fn note_changed(changes: &SessionChanges, id: Uuid, rows: Option<&[Row]>) {
    if rows.is_none_or(|rows| !rows.is_empty()) {
        changes.note_agent(id);
    }
}

fn read_agent(row: &Row) -> AgentRow {
    AgentRow {
        id: row.get(0),
        name: row.get(1),
        status: if row.get::<_, &str>(2) == "active" { AgentStatus::Active } else { AgentStatus::Destroyed },
        created_at: from_nanos(row.get(3)),
        dir: confine_to_home(row.get(4), row.get(1)),
        config: row.get(5),
        stamp: row.get(6),
        sessions: count(row, 7),
    }
}

fn upsert(row: AgentRow) -> Call {
    let status = match row.status {
        AgentStatus::Active => "active",
        AgentStatus::Destroyed => "destroyed",
    };
    call!(
        "SELECT upsert_agent($1, $2, $3, $4, $5, $6, $7)",
        row.id,
        row.name,
        status.to_owned(),
        to_nanos(row.created_at),
        row.dir,
        row.config,
        row.stamp,
    )
}
