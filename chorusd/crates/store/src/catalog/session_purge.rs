//! Updating and purging sessions.

use chorus_base::error::{Error, Result};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{Catalog, SessionRow, SessionTable, imported_usage};
use crate::db_thread::erase_wal;
use crate::sqlite::StoreResult;

/// Key of a setting that exists while purged data may be left in the database files.
const PURGE_DUE_KEY: &str = "forget_due";

impl SessionTable {
    /// Updates header, stamp and corruption of a session's row; its place in the order stays.
    pub fn update(&self, row: SessionRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let header = serde_json::to_string(&row.header).map_err(|e| Error::internal(e.to_string()))?;
            update_header(conn, &row, &header)
        })
    }

    /// Deletes a session's row for good, and records that the database files must be purged.
    pub fn purge(&self, id: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.execute("DELETE FROM sessions WHERE id = ?1", [id.as_bytes()])?;
            imported_usage::delete(conn, id)?;
            conn.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?1, '1')", [PURGE_DUE_KEY])?;
            Ok(())
        })
    }
}

/// Writes the columns of `row` that an update changes; `header` is its header as JSON.
pub(super) fn update_header(conn: &Connection, row: &SessionRow, header: &str) -> StoreResult<()> {
    let (id, source) = (row.header.id, row.header.source.as_ref());
    conn.prepare_cached(
        "UPDATE sessions SET header = ?2, file_stamp = ?3, corrupt = ?4, source_program = ?5, source_conversation = ?6,
             project = ?7
         WHERE id = ?1",
    )?
    .execute(params![
        id.as_bytes(),
        header,
        row.file_stamp,
        row.corrupt,
        source.map(|source| &source.program),
        source.map(|source| &source.conversation),
        source.and_then(|source| source.project.as_ref()),
    ])?;
    conn.prepare_cached("DELETE FROM session_tags WHERE id = ?1")?.execute([id.as_bytes()])?;
    let mut tag = conn.prepare_cached("INSERT OR IGNORE INTO session_tags (id, tag) VALUES (?1, ?2)")?;
    for name in &row.header.tags {
        tag.execute(params![id.as_bytes(), name])?;
    }
    Ok(())
}

impl Catalog {
    /// Returns whether the database files must be purged.
    pub async fn is_purge_due(&self) -> Result<bool> {
        Ok(self.settings.get(PURGE_DUE_KEY).await?.is_some())
    }

    /// Removes the remains of deleted rows: truncates the write-ahead log, and deletes the copy of the last stop. The
    /// pages themselves were overwritten when the rows were deleted (`secure_delete`).
    pub async fn purge_deleted(&self) -> Result<()> {
        let copy = self.path.with_extension("db.bak");
        self.writer
            .submit_outside_transaction(move |conn| {
                match std::fs::remove_file(&copy) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io("cannot remove the copy of the catalog", &e).into());
                    }
                    _ => {}
                }
                erase_wal(conn)?;
                // Delete this last, so that an interrupted purge is repeated.
                conn.execute("DELETE FROM settings WHERE key = ?1", [PURGE_DUE_KEY])?;
                Ok(())
            })
            .await
    }
}
