//! Sessions that nobody has used for long.

use chorus_base::error::Result;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::SessionTable;
use crate::journal::{from_nanos, to_nanos};
use crate::sqlite::StoreResult;

/// Rows that are read in one transaction.
const ROWS_PER_CHUNK: i64 = 5_000;

/// Time of the last use of a session, its id and its agent's id.
pub(super) type UnusedSession = (Timestamp, Uuid, Uuid);

impl SessionTable {
    /// Lists the sessions that nobody has used since `before`, in no particular order. Reads in chunks, so that other
    /// reads are not delayed.
    pub async fn list_unused_since(&self, before: Timestamp) -> Result<Vec<UnusedSession>> {
        let mut found = Vec::new();
        let mut from = Some(0);
        while let Some(after) = from {
            let (piece, next) = self.db.reader.submit(move |conn| read_chunk(conn, before, after)).await?;
            found.extend(piece);
            from = next;
        }
        Ok(found)
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
