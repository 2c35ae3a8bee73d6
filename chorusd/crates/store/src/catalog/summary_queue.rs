//! Queue of sessions that a model will summarise. A row is deleted with its session, or once the summary is written or
//! given up.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// A pending summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingSummary {
    /// Whether a person wrote the description, which then must be kept.
    pub described: bool,
}

/// The queue of sessions that wait for a summary.
#[derive(Debug, Clone)]
pub struct SummaryQueue {
    pub(super) db: CatalogDb,
}

impl SummaryQueue {
    /// Adds a session to the queue, if it still exists.
    pub fn push(&self, id: Uuid, wanted: PendingSummary) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| enqueue(conn, id, wanted))
    }

    /// Removes a session from the queue.
    pub fn remove(&self, id: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("DELETE FROM summaries_wanted WHERE id = ?1")?.execute([id.as_bytes()])?;
            Ok(())
        })
    }

    /// Returns the queue's entry for a session.
    pub async fn get(&self, id: Uuid) -> Result<Option<PendingSummary>> {
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT described FROM summaries_wanted WHERE id = ?1")?
                    .query_row([id.as_bytes()], |row| Ok(PendingSummary { described: row.get(0)? }))
                    .optional()?)
            })
            .await
    }

    /// Lists all sessions in the queue, newest first.
    pub async fn list(&self) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(|conn| {
                let mut statement = conn
                    .prepare_cached("SELECT id FROM summaries_wanted JOIN sessions USING (id) ORDER BY place DESC")?;
                let ids = statement
                    .query_map([], |row| row.get(0).map(Uuid::from_bytes))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(ids)
            })
            .await
    }
}

/// Lists all entries.
pub(super) fn list_pending(conn: &Connection) -> StoreResult<Vec<(Uuid, PendingSummary)>> {
    let mut statement = conn.prepare_cached("SELECT id, described FROM summaries_wanted")?;
    let read = |row: &Row<'_>| Ok((Uuid::from_bytes(row.get(0)?), PendingSummary { described: row.get(1)? }));
    Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn enqueue(conn: &Connection, id: Uuid, wanted: PendingSummary) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO summaries_wanted (id, described) SELECT id, ?2 FROM sessions WHERE id = ?1",
    )?
    .execute(params![id.as_bytes(), wanted.described])?;
    Ok(())
}
