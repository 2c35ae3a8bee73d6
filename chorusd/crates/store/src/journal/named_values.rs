//! Named values beside the live contexts, in the table `marks`.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteJournal;
use crate::sqlite::StoreResult;

impl SqliteJournal {
    /// Returns a function that stores values under `name` without waiting for the commit.
    pub(crate) fn value_writer(&self, name: &'static str) -> impl Fn(String) + Send + Sync + 'static {
        let writer = self.writer.clone();
        move |value| drop(writer.submit(move |conn| upsert_value(conn, name, &value)))
    }

    /// Stores a value under `name`.
    pub(crate) fn set_value(
        &self,
        name: &'static str,
        value: String,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| upsert_value(conn, name, &value))
    }

    /// Returns the value stored under `name`.
    pub(crate) async fn value(&self, name: &'static str) -> Result<Option<String>> {
        self.reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT value FROM marks WHERE name = ?1")?
                    .query_row([name], |row| row.get(0))
                    .optional()?)
            })
            .await
    }
}

pub(super) fn upsert_value(conn: &Connection, name: &str, value: &str) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO marks (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?
    .execute(params![name, value])?;
    Ok(())
}
