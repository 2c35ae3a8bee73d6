//! Small things that are remembered by name.

use rusqlite::{OptionalExtension as _, params};

use super::Catalog;
use crate::failure::Result;

impl Catalog {
    /// The value of `key`.
    ///
    /// # Errors
    /// A database that cannot be read.
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

    /// Sets `key`, or removes it.
    pub fn set_setting(
        &self,
        key: &'static str,
        value: Option<String>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
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
        })
    }
}
