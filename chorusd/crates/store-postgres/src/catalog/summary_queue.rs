//! Queue of sessions that a model will summarize.

use chorus_catalog::{CatalogRead, CatalogWrite, PendingSummary, SummaryQueue};
use uuid::Uuid;

use super::database::CatalogDb;
use crate::statement::{Call, call};

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresSummaryQueue {
    pub(crate) db: CatalogDb,
}

impl SummaryQueue for PostgresSummaryQueue {
    fn push(&self, id: Uuid, wanted: PendingSummary) -> CatalogWrite<()> {
        self.db.write(Ok(None), vec![self.db.require_session(id), enqueue_call(id, wanted)])
    }

    fn remove(&self, id: Uuid) -> CatalogWrite<()> {
        let delete = call!("DELETE FROM summaries_wanted WHERE id = $1", id);
        self.db.write(Ok(None), vec![self.db.require_session(id), delete])
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<PendingSummary>> {
        Box::pin(async move {
            let rows = self.db.read("SELECT described FROM summaries_wanted WHERE id = $1", &[&id]).await?;
            Ok(rows.first().map(|row| PendingSummary { described: row.get(0) }))
        })
    }

    fn list(&self) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move {
            let sql = "SELECT s.id FROM summaries_wanted w JOIN sessions s ON s.id = w.id
                 WHERE s.agent_id = ANY ($1) ORDER BY s.place DESC, s.serial DESC";
            let rows = self.db.read(sql, &[&self.db.grants.agents()]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

/// Adds a session to the queue, or replaces its entry, if the session exists.
pub(super) fn enqueue_call(id: Uuid, wanted: PendingSummary) -> Call {
    call!(
        "INSERT INTO summaries_wanted SELECT id, $2 FROM sessions WHERE id = $1
         ON CONFLICT (id) DO UPDATE SET described = $2",
        id,
        wanted.described,
    )
}
