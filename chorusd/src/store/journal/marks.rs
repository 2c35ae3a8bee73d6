//! Small things that are noted by name beside the live contexts.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::Journal;
use crate::failure::Result;

impl Journal {
    /// What notes `name`, without waiting for it.
    pub(in crate::store) fn marker(&self, name: &'static str) -> impl Fn(String) + Send + Sync + 'static {
        let writer = self.writer.clone();
        move |value| drop(writer.submit(move |conn| put(conn, name, &value)))
    }

    /// Notes `name`.
    pub(in crate::store) fn note(
        &self,
        name: &'static str,
        value: String,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| put(conn, name, &value))
    }

    /// What was noted.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub(in crate::store) async fn mark(&self, name: &'static str) -> Result<Option<String>> {
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

pub(super) fn put(conn: &Connection, name: &str, value: &str) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO marks (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?
    .execute(params![name, value])?;
    Ok(())
}
