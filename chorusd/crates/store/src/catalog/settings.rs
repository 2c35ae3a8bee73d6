//! Settings: named values that are stored in the catalog.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::CatalogDb;
use super::audit::{self, AuditDecision, AuditLog};
use crate::sqlite::StoreResult;

/// The table of settings.
#[derive(Debug, Clone)]
pub struct SettingTable {
    pub(super) db: CatalogDb,
    pub(super) audit: AuditLog,
}

impl SettingTable {
    /// Returns the value of `key`.
    pub async fn get(&self, key: &'static str) -> Result<Option<String>> {
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
                    .query_row([key], |row| row.get(0))
                    .optional()?)
            })
            .await
    }

    /// Sets `key`, or removes it if `value` is `None`.
    pub fn set(&self, key: &'static str, value: Option<String>) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| upsert(conn, key, value.as_deref()))
    }

    /// Sets `key` to the `new` value of `row`, or removes it, and appends `row` to the audit log in the same commit.
    pub fn set_audited(
        &self,
        key: &'static str,
        row: AuditDecision,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let value = row.new.clone();
        let row = self.audit.redact_row(row);
        let listener = self.audit.listener.clone();
        let change = move |conn: &Connection| {
            upsert(conn, key, value.as_deref())?;
            audit::append(conn, &row)
        };
        let done = self.db.writer.submit_with_callback(change, move |head| listener.notify(*head));
        async move { done.await.map(drop) }
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
