//! Writes of rows of sessions. Each locks the row of the agent's epoch: by the epoch if the request names the agent, else by
//! the owner.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{CatalogWrite, ImportedUsage, NewSession, SessionChanges, SessionPlacement, SessionRow};
use chorus_journal::to_nanos;
use chorus_proto::SessionHeader;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::imported_usage::{delete_calls, move_calls, record_calls};
use super::session_lookup::{NEIGHBOURS_OF, read_short_id};
use super::session_rows::{body_call, insert_call, insert_missing_call, read_sessions, update_call};
use super::sessions::PostgresSessionTable;
use super::summary_queue::enqueue_call;
use crate::batch::JobRows;
use crate::ownership::Grant;
use crate::statement::{Call, call};

/// Deletes the row of this very session.
fn delete_exact_call(session: &SessionHeader) -> Call {
    let sql = "DELETE FROM sessions WHERE id = $1 AND agent_id = $2 AND session_id = $3";
    call!(sql, session.id, session.agent_id, session.session_id.clone())
}

/// How long deletions are recorded for nodes that do not run.
const DELETIONS_KEPT: SignedDuration = SignedDuration::from_hours(366 * 24);

fn delete_call(id: Uuid) -> Call {
    call!("DELETE FROM sessions WHERE id = $1", id)
}

fn failed<T: Send + 'static>(failure: Error) -> CatalogWrite<T> {
    Box::pin(async move { Err(failure) })
}

impl PostgresSessionTable {
    fn grant_of(&self, session: &SessionHeader) -> Result<Option<Grant>> {
        self.db.grants.of_agent(session.agent_id).map(Some)
    }

    /// Queues calls that change the row of one session.
    fn write_noted(&self, id: Uuid, grant: Result<Option<Grant>>, calls: Vec<Call>) -> CatalogWrite<()> {
        let changes = self.changes.clone();
        let note = move |_: &JobRows| {
            changes.note_session(id);
            Ok(())
        };
        self.db.writer.submit(grant, calls, None, note, |_| ())
    }

    pub(super) fn insert_new(&self, new: NewSession) -> CatalogWrite<String> {
        let NewSession { row, placement, summary, usage, is_one_of_many: _ } = new;
        let id = row.header.id;
        let insert = match insert_call(&row, placement == SessionPlacement::Last) {
            Ok(insert) => insert,
            Err(failure) => return failed(failure),
        };
        // A scan may have found the file first and inserted a row for this session.
        let mut calls = vec![delete_exact_call(&row.header), insert];
        calls.extend(body_call(&row, false));
        calls.extend(summary.map(|summary| enqueue_call(id, summary)));
        calls.extend(usage.into_iter().flat_map(|usage| record_calls(id, &usage)));
        calls.push(call!(NEIGHBOURS_OF, id));
        let changes = self.changes.clone();
        let short_id = move |rows: &JobRows| {
            changes.note_session(id);
            let row = rows.last().and_then(|rows| rows.first());
            row.map(|row| read_short_id(id, row, 0).text).ok_or_else(|| Error::internal("PostgreSQL returned no row"))
        };
        let grant = self.grant_of(&row.header);
        self.db.writer.submit(grant, calls, Some(call!(NEIGHBOURS_OF, id)), short_id, |_| ())
    }

    pub(super) fn upsert_found(&self, row: &SessionRow) -> CatalogWrite<()> {
        let insert = match insert_missing_call(row) {
            Ok(insert) => insert,
            Err(failure) => return failed(failure),
        };
        let (id, agent) = (row.header.id, row.header.agent_id);
        let (node, boot) = self.db.node();
        let delete = call!(
            "SELECT delete_replaced_sessions($1, $2, $3, $4, $5, $6, $7, $8)",
            id,
            agent,
            row.header.session_id.clone(),
            row.sha256.clone(),
            row.file_stamp.clone(),
            row.corrupt.clone(),
            node,
            boot,
        );
        let changes = self.changes.clone();
        let note = move |rows: &JobRows| {
            note_upsert(&changes, id, agent, rows);
            Ok(())
        };
        let calls = [delete, insert].into_iter().chain(body_call(row, false)).collect();
        self.db.writer.submit(self.grant_of(&row.header), calls, None, note, |_| ())
    }

    pub(super) fn delete_inserted(&self, session: &SessionHeader) -> CatalogWrite<()> {
        let mut calls = vec![delete_exact_call(session)];
        calls.extend(delete_calls(session.id));
        self.write_noted(session.id, self.grant_of(session), calls)
    }

    /// Updates the row of a session; one that has grown with its hash, its place, and its usage if that is given.
    pub(super) fn update_row(
        &self,
        row: &SessionRow,
        has_grown: bool,
        usage: Option<Arc<ImportedUsage>>,
    ) -> CatalogWrite<()> {
        let id = row.header.id;
        let update = match update_call(row, has_grown) {
            Ok(update) => update,
            Err(failure) => return failed(failure),
        };
        let mut calls = vec![self.db.require_session(id), update];
        calls.extend(has_grown.then(|| body_call(row, true)).flatten());
        calls.extend(usage.into_iter().flat_map(|usage| record_calls(id, &usage)));
        self.write_noted(id, self.grant_of(&row.header), calls)
    }

    pub(super) fn insert_moved(&self, row: &SessionRow) -> CatalogWrite<()> {
        let id = row.header.id;
        let insert = match insert_call(row, false) {
            Ok(insert) => insert,
            Err(failure) => return failed(failure),
        };
        let mut calls = vec![self.db.require_session(id), delete_call(id), insert];
        calls.extend(body_call(row, false));
        calls.extend(move_calls(id, row.header.agent_id));
        self.write_noted(id, self.grant_of(&row.header), calls)
    }

    pub(super) fn set_last_use(&self, id: Uuid, at: Timestamp) -> CatalogWrite<()> {
        let update = call!("UPDATE sessions SET last_used_at = $2 WHERE id = $1", id, to_nanos(at));
        self.db.write(Ok(None), vec![self.db.require_session(id), update])
    }

    /// Deletes the row of a session, and with `purge` its usage.
    pub(super) fn delete_row(&self, id: Uuid, purge: bool) -> CatalogWrite<()> {
        let now = Timestamp::now();
        let forgotten = now.checked_sub(DELETIONS_KEPT).unwrap_or(Timestamp::MIN);
        let mut calls = vec![
            self.db.require_session(id),
            call!(
                "INSERT INTO deleted_sessions (session_id, agent_id, deleted_at) SELECT id, agent_id, $2 FROM sessions WHERE id = $1",
                id,
                to_nanos(now)
            ),
            call!("DELETE FROM deleted_sessions WHERE deleted_at < $1", to_nanos(forgotten)),
            delete_call(id),
        ];
        if purge {
            calls.extend(delete_calls(id));
        }
        self.write_noted(id, Ok(None), calls)
    }

    /// Reads a session after all writes that were queued before.
    pub(super) fn read_if_unused(&self, id: Uuid, before: Timestamp) -> CatalogWrite<Option<SessionRow>> {
        const SQL: &str = "SELECT s.header, s.sha256, s.file_stamp, s.corrupt, s.last_used_at, s.place, s.body_key,
             s.body_count, s.body_bytes, s.object_bytes, s.body_sha256, s.index_sha256
             FROM sessions s WHERE id = $1 AND last_used_at < $2";
        let read = || call!(SQL, id, to_nanos(before));
        let found = |rows: &JobRows| Ok(read_sessions(rows.first().map_or(&[], Vec::as_slice))?.pop());
        self.db.writer.submit(Ok(None), vec![read()], Some(read()), found, |_| ())
    }
}

/// Notes the rows that an upsert has deleted, and the one that it has inserted. If the answer was lost, nothing is known:
/// then all sessions of the agent count as changed.
fn note_upsert(changes: &SessionChanges, id: Uuid, agent: Uuid, rows: &JobRows) {
    let [deleted, inserted, ..] = &rows[..] else {
        changes.note_session(id);
        changes.note_agent(agent);
        return;
    };
    deleted.iter().map(|row: &Row| row.get(0)).for_each(|id| changes.note_session(id));
    if !inserted.is_empty() {
        changes.note_session(id);
    }
}
