//! Sessions that nobody has used for long.

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::SessionTable;
use super::sessions::{COLUMNS, SessionRow, read_session};
use crate::sqlite::StoreResult;

/// Rows that are read in one transaction.
const ROWS_PER_CHUNK: i64 = 5_000;

/// Time of the last use of a session, its id and its agent's id.
pub(super) type UnusedSession = (Timestamp, Uuid, Uuid);

impl SessionTable {
    /// Lists the sessions that nobody has used since `before`, in no particular order. Uses that were reported by
    /// [`SessionTable::touch`] count although nobody waited for it. Reads in chunks, so that other reads are not
    /// delayed.
    pub async fn list_unused_since(&self, before: Timestamp) -> Result<Vec<UnusedSession>> {
        self.db.writer.submit_without_savepoint(|_| Ok(())).await?;
        let mut found = Vec::new();
        let mut from = Some(0);
        while let Some(after) = from {
            let (piece, next) = self.db.reader.submit(move |conn| read_chunk(conn, before, after)).await?;
            found.extend(piece);
            from = next;
        }
        Ok(found)
    }

    /// Returns the session if it exists and nobody has used it since `before`, every earlier call of
    /// [`SessionTable::touch`] included.
    pub fn get_unused_since(
        &self,
        id: Uuid,
        before: Timestamp,
    ) -> impl Future<Output = Result<Option<SessionRow>>> + Send + use<> {
        self.db.writer.submit_without_savepoint(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1 AND last_used_at < ?2");
            let mut statement = conn.prepare_cached(&sql)?;
            Ok(statement.query_row(params![id.as_bytes(), to_nanos(before)], read_session).optional()?)
        })
    }
}

/// Reads one chunk after row id `after`; also returns the row id after which the next chunk begins.
fn read_chunk(conn: &Connection, before: Timestamp, after: i64) -> StoreResult<(Vec<UnusedSession>, Option<i64>)> {
    let last: Option<i64> = conn.prepare_cached("SELECT max(rowid) FROM sessions")?.query_row([], |row| row.get(0))?;
    let upto = after.saturating_add(ROWS_PER_CHUNK);
    let mut statement = conn.prepare_cached(
        "SELECT last_used_at, id, agent_id FROM sessions WHERE rowid > ?1 AND rowid <= ?2 AND last_used_at < ?3",
    )?;
    let unused = |row: &Row<'_>| {
        let (id, agent): ([u8; 16], [u8; 16]) = (row.get(1)?, row.get(2)?);
        Ok((from_nanos(row.get(0)?), Uuid::from_bytes(id), Uuid::from_bytes(agent)))
    };
    let found = statement.query_map(params![after, upto, to_nanos(before)], unused)?;
    let found = found.collect::<rusqlite::Result<_>>()?;
    Ok((found, Some(upto).filter(|upto| last.is_some_and(|last| *upto < last))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Catalog;
    use super::super::sessions::{SessionPlacement, tests::row_with_stamp};
    use super::*;

    #[tokio::test]
    async fn a_use_that_nobody_waited_for_counts() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: crate::OnFatal = Arc::new(|_| ());
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let (catalog, _) =
            Catalog::open(&dir.path().join("chorus.db"), &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap();
        let sessions = &catalog.sessions;
        let row = row_with_stamp("1");
        let id = row.header.id;
        sessions.insert(row, SessionPlacement::Last, None).await.unwrap();
        let day = |day: i64| Timestamp::from_second(day * 86_400).unwrap();
        assert_eq!(sessions.list_unused_since(day(1)).await.unwrap().len(), 1);
        assert!(sessions.get_unused_since(id, day(1)).await.unwrap().is_some());
        drop(sessions.touch(id, day(2)));
        assert_eq!(sessions.list_unused_since(day(1)).await.unwrap(), []);
        drop(sessions.touch(id, day(4)));
        assert!(sessions.get_unused_since(id, day(3)).await.unwrap().is_none());
        assert!(sessions.get_unused_since(id, day(5)).await.unwrap().is_some());
        catalog.close().await.unwrap();
    }
}
