//! Memories of agents. Those of a project concern no agent: whoever may change them does.

use chorus_base::error::{Error, Result};
use chorus_catalog::memories::{MAX_ENTRIES, limit_error};
use chorus_catalog::{CatalogRead, CatalogWrite, MemoryRow, MemoryScope, MemoryTable, RememberOutcome};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemorySource;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, is_storable, only, refuse_nul};
use crate::rows::{count, to_bigint};
use crate::statement::{Call, call};

const COLUMNS: &str = "m.id, m.agent_id, m.agent_name, m.project, m.text, m.path, m.created_at, m.requester, m.source, \
                       m.message_id";

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresMemoryTable {
    pub(super) db: CatalogDb,
}

impl MemoryTable for PostgresMemoryTable {
    fn insert(&self, row: MemoryRow) -> CatalogWrite<RememberOutcome> {
        let grant = check(&row).and_then(|()| self.db.grant(row.agent));
        let write = Uuid::new_v4();
        let calls = vec![insert_call(row.clone(), write), outcome_call(&row, write)];
        let stored = self.db.write_and_read(grant, calls, outcome_call(&row, write), |rows| {
            let row = only(rows)?;
            match (row.get(0), row.get(1)) {
                (Some(new), _) => Ok(RememberOutcome::New(new)),
                (None, Some(known)) => Ok(RememberOutcome::Known(known)),
                (None, None) => Err(Error::new(ErrorKind::Busy, "the memory was removed at once")),
            }
        });
        Box::pin(async move { stored.await.map_err(|failure| explain_limit(failure, &[row])) })
    }

    fn list_visible(&self, whose: MemoryScope) -> CatalogRead<'_, Vec<MemoryRow>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM memories m WHERE (agent_id = $1 AND project IS NULL) OR project = $2
                 ORDER BY source = 'hand' DESC, number DESC"
            );
            let project = whose.project.filter(|project| is_storable(project));
            Ok(self.db.read(&sql, &[&whose.agent, &project]).await?.iter().map(read_memory).collect())
        })
    }

    fn first_visible(&self, whose: Vec<MemoryScope>, most: u32) -> CatalogRead<'_, Vec<(Vec<MemoryRow>, u64)>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {COLUMNS}, c.total, scope.place
                 FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS scope (agent, project, place)
                 CROSS JOIN LATERAL (
                     SELECT count(*) AS total FROM memories
                     WHERE (agent_id = scope.agent AND project IS NULL) OR project = scope.project) AS c
                 LEFT JOIN LATERAL (
                     SELECT * FROM memories
                     WHERE (agent_id = scope.agent AND project IS NULL) OR project = scope.project
                     ORDER BY source = 'hand' DESC, number DESC LIMIT $3) AS m ON true
                 ORDER BY scope.place, m.source = 'hand' DESC, m.number DESC"
            );
            let agents: Vec<Uuid> = whose.iter().map(|scope| scope.agent).collect();
            let projects = whose.iter().map(|scope| scope.project.clone().filter(|project| is_storable(project)));
            let projects: Vec<Option<String>> = projects.collect();
            let mut found = vec![(Vec::new(), 0); whose.len()];
            for row in self.db.read(&sql, &[&agents, &projects, &i64::from(most)]).await? {
                let place = usize::try_from(row.get::<_, i64>(11) - 1).unwrap_or(usize::MAX);
                let Some((memories, total)) = found.get_mut(place) else { continue };
                *total = count(&row, 10);
                if row.get::<_, Option<Uuid>>(0).is_some() {
                    memories.push(read_memory(&row));
                }
            }
            Ok(found)
        })
    }

    fn list_written_by(&self, agent: Uuid) -> CatalogRead<'_, Vec<MemoryRow>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM memories m WHERE agent_id = $1 ORDER BY number");
            Ok(self.db.read(&sql, &[&agent]).await?.iter().map(read_memory).collect())
        })
    }

    fn contains(&self, id: Uuid) -> CatalogRead<'_, bool> {
        Box::pin(async move { Ok(!self.db.read("SELECT FROM memories WHERE id = $1", &[&id]).await?.is_empty()) })
    }

    fn update_text(&self, id: Uuid, text: String) -> CatalogWrite<()> {
        let grant = refuse_nul([&*text]).map(|()| None);
        let update = call!("UPDATE memories SET text = $2, source = 'hand' WHERE id = $1", id, text);
        self.db.write(grant, vec![self.require_owners(vec![id]), update])
    }

    fn delete(&self, ids: Vec<Uuid>) -> CatalogWrite<()> {
        let delete = call!("DELETE FROM memories WHERE id = ANY ($1)", ids.clone());
        self.db.write(Ok(None), vec![self.require_owners(ids), delete])
    }

    fn delete_own(&self, agent: Uuid) -> CatalogWrite<()> {
        let delete = call!("DELETE FROM memories WHERE agent_id = $1 AND project IS NULL", agent);
        self.db.write(self.db.grant(agent), vec![delete])
    }
}

impl PostgresMemoryTable {
    /// The fence of entries that are an agent's own.
    fn require_owners(&self, ids: Vec<Uuid>) -> Call {
        call!(
            "SELECT require_owner(agent_id, $2, $3) FROM (
                 SELECT DISTINCT agent_id FROM memories WHERE id = ANY ($1) AND project IS NULL ORDER BY agent_id
             ) AS owners",
            ids,
            self.db.node.id.clone(),
            self.db.node.boot,
        )
    }
}

/// Refuses a memory that cannot be stored.
pub(super) fn check(row: &MemoryRow) -> Result<()> {
    let MemoryRow { agent_name, project, text, path, user, message, .. } = row;
    let optional = [project, path, message].into_iter().flatten();
    refuse_nul(optional.chain([agent_name, text, user]).map(String::as_str))
}

/// Stores a memory, unless there is an equal one. `write` identifies the request.
pub(super) fn insert_call(row: MemoryRow, write: Uuid) -> Call {
    call!(
        "SELECT insert_memory($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        row.id,
        Uuid::new_v4(),
        write,
        row.agent,
        row.agent_name,
        row.project,
        row.text,
        row.path,
        to_nanos(row.at),
        row.user,
        row.source.as_str().to_owned(),
        row.message,
        to_bigint(MAX_ENTRIES),
    )
}

/// Lists the memories that a request has added, in order: id and text.
pub(super) fn added_call(write: Uuid, agents: Vec<Uuid>) -> Call {
    let sql = "SELECT id, text FROM memories WHERE agent_id = ANY ($2) AND write_id = $1 ORDER BY number";
    call!(sql, write, agents)
}

/// Finds what a request has stored, and what it found: the id of a new memory, and that of an equal one.
fn outcome_call(row: &MemoryRow, write: Uuid) -> Call {
    call!(
        "SELECT (SELECT id FROM memories WHERE agent_id = $2 AND write_id = $1), find_memory($2, $3, $4, $5)",
        write,
        row.agent,
        row.project.clone(),
        row.text.clone(),
        row.path.clone(),
    )
}

/// Says which of `memories` did not fit, if one did not: the error of the database has the limit and the id.
pub(super) fn explain_limit(failure: Error, memories: &[MemoryRow]) -> Error {
    let refused = failure.message.split_once(' ').filter(|_| failure.kind == ErrorKind::LimitReached);
    let refused = refused.and_then(|(count, id)| {
        let id: Uuid = id.parse().ok()?;
        Some(limit_error(memories.iter().find(|memory| memory.id == id)?, count.parse().ok()?))
    });
    refused.unwrap_or(failure)
}

fn read_memory(row: &Row) -> MemoryRow {
    MemoryRow {
        id: row.get(0),
        agent: row.get(1),
        agent_name: row.get(2),
        project: row.get(3),
        text: row.get(4),
        path: row.get(5),
        at: from_nanos(row.get(6)),
        user: row.get(7),
        source: if row.get::<_, &str>(8) == "hand" { MemorySource::Hand } else { MemorySource::Tool },
        message: row.get(9),
    }
}
