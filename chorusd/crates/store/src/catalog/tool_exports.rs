//! Rows of exports.

use chorus_catalog::{CatalogRead, CatalogWrite, ToolExport, ToolExportTable};
use chorus_journal::{from_nanos, to_nanos};
use rusqlite::{OptionalExtension as _, params};
use uuid::Uuid;

use super::CatalogDb;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteToolExportTable {
    pub(super) db: CatalogDb,
}

impl ToolExportTable for SqliteToolExportTable {
    fn record(&self, export: ToolExport) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            let ToolExport { conversation, session, origin, last_message_at } = export;
            conn.prepare_cached(
                "INSERT OR IGNORE INTO tool_exports (conversation, session_id, origin, last_message_at)
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                conversation,
                session.map(Uuid::into_bytes),
                origin,
                to_nanos(last_message_at)
            ])?;
            Ok(())
        })
    }

    fn find(&self, conversation: String) -> CatalogRead<'_, Option<ToolExport>> {
        self.db.read(move |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT session_id, origin, last_message_at FROM tool_exports WHERE conversation = ?1",
            )?;
            let found = statement.query_row([&conversation], |row| {
                Ok(ToolExport {
                    conversation: conversation.clone(),
                    session: row.get::<_, Option<_>>(0)?.map(Uuid::from_bytes),
                    origin: row.get(1)?,
                    last_message_at: from_nanos(row.get(2)?),
                })
            });
            Ok(found.optional()?)
        })
    }

    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            let sql = "UPDATE tool_exports SET session_id = ?2 WHERE session_id = ?1";
            conn.prepare_cached(sql)?.execute([from.as_bytes(), to.as_bytes()])?;
            Ok(())
        })
    }
}
