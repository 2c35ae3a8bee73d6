//! Rows of exports: the conversations of other programs as which sessions were written, so that capture recognizes them.

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};
use uuid::Uuid;

use super::CatalogDb;

/// A session that was written as a conversation of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExport {
    /// Hash of the program and the id of the conversation there.
    pub conversation: String,
    /// The session; `None` for a live conversation that no session holds.
    pub session: Option<Uuid>,
    /// Hash of the program and the id of the conversation that the session holds.
    pub origin: String,
    /// The time of the last message that was written. Later ones are new.
    pub last_message_at: Timestamp,
}

/// The table of exports.
#[derive(Debug, Clone)]
pub struct ToolExportTable {
    pub(super) db: CatalogDb,
}

impl ToolExportTable {
    /// Records an export. The first one of a conversation counts, because its program may have continued it since.
    pub fn record(&self, export: ToolExport) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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

    /// Finds the export as a conversation, by the hash of its program and id.
    pub async fn find(&self, conversation: String) -> Result<Option<ToolExport>> {
        self.db
            .reader
            .submit(move |conn| {
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
            .await
    }
}
