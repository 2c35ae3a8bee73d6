//! Sessions that nobody has used for long.

use chorus_catalog::{SessionRow, UnusedSession};
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::session_rows::{COLUMNS, read_session};
use crate::sqlite::StoreResult;

/// Rows that are read in one transaction.
const ROWS_PER_CHUNK: i64 = 5_000;

/// Returns the session if it exists and nobody has used it since `before`.
pub(super) fn select_unused(conn: &Connection, id: Uuid, before: Timestamp) -> StoreResult<Option<SessionRow>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1 AND last_used_at < ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    Ok(statement.query_row(params![id.as_bytes(), to_nanos(before)], read_session).optional()?)
}

/// Reads one chunk after row id `after`; also returns the row id after which the next chunk begins.
pub(super) fn read_chunk(
    conn: &Connection,
    before: Timestamp,
    after: i64,
) -> StoreResult<(Vec<UnusedSession>, Option<i64>)> {
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

    use chorus_catalog::{NewSession, SessionPlacement};

    use super::super::SqliteCatalog;
    use super::super::sessions::tests::row_with_stamp;
    use super::*;

    #[tokio::test]
    async fn a_use_that_nobody_waited_for_counts() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: crate::OnFatal = Arc::new(|_| ());
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let (catalog, _) =
            SqliteCatalog::open(&dir.path().join("chorus.db"), &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap();
        let sessions = &catalog.tables.sessions;
        let row = row_with_stamp("1");
        let id = row.header.id;
        sessions.insert(NewSession::new(row, SessionPlacement::Last)).await.unwrap();
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
