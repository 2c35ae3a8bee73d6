//! Queue of sessions that a model will summarize.

use chorus_catalog::{CatalogRead, CatalogWrite, PendingSummary, SummaryQueue};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteSummaryQueue {
    pub(super) db: CatalogDb,
}

impl SummaryQueue for SqliteSummaryQueue {
    fn push(&self, id: Uuid, wanted: PendingSummary) -> CatalogWrite<()> {
        self.db.write(move |conn| enqueue(conn, id, wanted))
    }

    fn remove(&self, id: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("DELETE FROM summaries_wanted WHERE id = ?1")?.execute([id.as_bytes()])?;
            Ok(())
        })
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<PendingSummary>> {
        self.db.read(move |conn| {
            Ok(conn
                .prepare_cached("SELECT described FROM summaries_wanted WHERE id = ?1")?
                .query_row([id.as_bytes()], |row| Ok(PendingSummary { described: row.get(0)? }))
                .optional()?)
        })
    }

    fn list(&self) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT id FROM summaries_wanted JOIN sessions USING (id) ORDER BY place DESC")?;
            let ids =
                statement.query_map([], |row| row.get(0).map(Uuid::from_bytes))?.collect::<rusqlite::Result<_>>()?;
            Ok(ids)
        })
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
