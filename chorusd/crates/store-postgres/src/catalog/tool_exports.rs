//! Rows of exports.

use chorus_catalog::{CatalogRead, CatalogWrite, ToolExport, ToolExportTable};
use chorus_journal::{from_nanos, to_nanos};
use uuid::Uuid;

use super::CatalogDb;
use crate::statement::call;

/// The table in PostgreSQL, which all nodes share.
#[derive(Debug)]
pub(super) struct PostgresToolExportTable {
    pub(super) db: CatalogDb,
}

impl ToolExportTable for PostgresToolExportTable {
    fn record(&self, export: ToolExport) -> CatalogWrite<()> {
        let sql = "INSERT INTO tool_exports (conversation, session_id, origin, last_message_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT DO NOTHING";
        let ToolExport { conversation, session, origin, last_message_at } = export;
        self.db.write(Ok(None), vec![call!(sql, conversation, session, origin, to_nanos(last_message_at))])
    }

    fn find(&self, conversation: String) -> CatalogRead<'_, Option<ToolExport>> {
        Box::pin(async move {
            let sql = "SELECT session_id, origin, last_message_at FROM tool_exports WHERE conversation = $1";
            let rows = self.db.read(sql, &[&conversation]).await?;
            Ok(rows.first().map(|row| ToolExport {
                conversation,
                session: row.get(0),
                origin: row.get(1),
                last_message_at: from_nanos(row.get(2)),
            }))
        })
    }

    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()> {
        self.db.write(Ok(None), vec![call!("UPDATE tool_exports SET session_id = $2 WHERE session_id = $1", from, to)])
    }
}
