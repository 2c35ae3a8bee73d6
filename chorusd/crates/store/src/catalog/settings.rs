//! Settings: named values.

use chorus_catalog::{AuditDecision, CatalogRead, CatalogWrite, SettingTable};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::CatalogDb;
use super::audit::SqliteAuditLog;
use crate::sqlite::StoreResult;

/// The table in SQLite.
#[derive(Debug, Clone)]
pub(super) struct SqliteSettingTable {
    pub(super) db: CatalogDb,
    pub(super) audit: SqliteAuditLog,
}

impl SettingTable for SqliteSettingTable {
    fn get(&self, key: &'static str) -> CatalogRead<'_, Option<String>> {
        self.db.read(move |conn| {
            Ok(conn
                .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
                .optional()?)
        })
    }

    fn set(&self, key: &'static str, value: Option<String>) -> CatalogWrite<()> {
        self.db.write(move |conn| upsert(conn, key, value.as_deref()))
    }

    fn set_audited(&self, key: &'static str, row: AuditDecision) -> CatalogWrite<()> {
        let value = row.new.clone();
        let changed = self.audit.append_if(row, move |conn| {
            upsert(conn, key, value.as_deref())?;
            Ok(true)
        });
        Box::pin(async move { changed.await.map(drop) })
    }
}

pub(super) fn upsert(conn: &Connection, key: &str, value: Option<&str>) -> StoreResult<()> {
    match value {
        Some(value) => conn
            .prepare_cached(
                "INSERT INTO settings (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )?
            .execute(params![key, value])?,
        None => conn.prepare_cached("DELETE FROM settings WHERE key = ?1")?.execute([key])?,
    };
    Ok(())
}
