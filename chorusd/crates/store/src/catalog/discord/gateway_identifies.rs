//! Identifies of the gateway, one row each.

use std::time::Duration;

use chorus_catalog::discord::{IdentifyTable, IdentifyWindow};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::Connection;

use crate::catalog::CatalogDb;
use crate::sqlite::StoreResult;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteIdentifyTable {
    pub(super) db: CatalogDb,
}

impl IdentifyTable for SqliteIdentifyTable {
    fn count_in_window(&self, now: Timestamp, window: Duration) -> CatalogRead<'_, IdentifyWindow> {
        self.db.read(move |conn| count(conn, now, window))
    }

    fn try_record(&self, now: Timestamp, window: Duration, most: u32) -> CatalogWrite<IdentifyWindow> {
        self.db.write(move |conn| {
            // Move rows from the future to now, so that a clock that was set back does not make them count longer.
            let [at, since] = [to_nanos(now), to_nanos(now.checked_sub(window).unwrap_or(now))];
            conn.prepare_cached("UPDATE discord_identifies SET at = ?1 WHERE at > ?1")?.execute([at])?;
            conn.prepare_cached("DELETE FROM discord_identifies WHERE at <= ?1")?.execute([since])?;
            let before = count(conn, now, window)?;
            if before.count >= most {
                return Ok(before);
            }
            conn.prepare_cached("INSERT INTO discord_identifies (at) VALUES (?1)")?.execute([at])?;
            Ok(IdentifyWindow { recorded: true, ..count(conn, now, window)? })
        })
    }
}

fn count(conn: &Connection, now: Timestamp, window: Duration) -> StoreResult<IdentifyWindow> {
    let since = to_nanos(now.checked_sub(window).unwrap_or(now));
    let row = conn
        .prepare_cached("SELECT count(*), min(at), max(at) FROM discord_identifies WHERE at > ?1")?
        .query_row([since], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?)))?;
    let at = |nanos: Option<i64>| nanos.map(|nanos| from_nanos(nanos).min(now));
    Ok(IdentifyWindow { count: row.0, oldest: at(row.1), newest: at(row.2), recorded: false })
}
