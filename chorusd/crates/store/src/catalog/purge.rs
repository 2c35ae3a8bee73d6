//! Purges what deleted rows left in the files.

use chorus_base::error::{Error, Result};
use rusqlite::Connection;
use uuid::Uuid;

use super::{SqliteCatalog, imported_usage};
use crate::db_thread::erase_wal;
use crate::sqlite::StoreResult;

/// Key of a setting that exists while purged data may be left in the database files.
const PURGE_DUE_KEY: &str = "forget_due";

/// Permanently deletes a session's row, and records that the database files must be purged.
pub(super) fn purge_session(conn: &Connection, id: Uuid) -> StoreResult<()> {
    conn.execute("DELETE FROM sessions WHERE id = ?1", [id.as_bytes()])?;
    imported_usage::delete(conn, id)?;
    conn.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?1, '1')", [PURGE_DUE_KEY])?;
    Ok(())
}

impl SqliteCatalog {
    /// Returns whether the database files must be purged.
    pub(crate) async fn is_purge_due(&self) -> Result<bool> {
        Ok(self.tables.settings.get(PURGE_DUE_KEY).await?.is_some())
    }

    /// Removes the remains of deleted rows: truncates the write-ahead log, and deletes the copy of the last stop. The
    /// pages themselves were overwritten when the rows were deleted (`secure_delete`).
    pub(crate) async fn purge_deleted(&self) -> Result<()> {
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
