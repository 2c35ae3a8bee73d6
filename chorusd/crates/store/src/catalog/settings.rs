//! Settings: named values that are stored in the catalog.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Catalog;
use super::audit::{self, AuditDecision};
use crate::sqlite::StoreResult;

impl Catalog {
    /// Returns the value of `key`.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>> {
        self.reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
                    .query_row([key], |row| row.get(0))
                    .optional()?)
            })
            .await
    }

    /// Sets `key`, or removes it if `value` is `None`.
    pub fn set_setting(
        &self,
        key: &'static str,
        value: Option<String>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| upsert(conn, key, value.as_deref()))
    }

    /// Sets `key` to the `new` value of `row`, or removes it, and appends `row` to the audit log in the same commit.
    pub fn set_setting_audited(
        &self,
        key: &'static str,
        row: AuditDecision,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let value = row.new.clone();
        let row = self.redact_row(row);
        let hear = self.audit_listener.clone();
        let change = move |conn: &Connection| {
            upsert(conn, key, value.as_deref())?;
            audit::append(conn, &row)
        };
        let done = self.writer.submit_with_callback(change, move |head| hear.notify(*head));
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
