//! New connections to the gateway, one row each, for as long as they count.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;

use crate::failure::Result;
use crate::store::catalog::Catalog;
use crate::store::journal::{from_nanos, to_nanos};

/// Those that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identifies {
    pub count: u32,
    pub oldest: Option<Timestamp>,
    pub newest: Option<Timestamp>,
    /// This one was noted, too, and is among them.
    pub taken: bool,
}

impl Catalog {
    /// Those of the last `window`.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn discord_identifies(&self, now: Timestamp, window: Duration) -> Result<Identifies> {
        self.reader.submit(move |conn| count(conn, now, window)).await
    }

    /// Notes one at `now`, unless there were `most` within `window`.
    pub fn take_discord_identify(
        &self,
        now: Timestamp,
        window: Duration,
        most: u32,
    ) -> impl Future<Output = Result<Identifies>> + Send + use<> {
        self.writer.submit(move |conn| {
            // A clock that was set back makes none count for longer.
            let [at, since] = [to_nanos(now), to_nanos(now.checked_sub(window).unwrap_or(now))];
            conn.prepare_cached("UPDATE discord_identifies SET at = ?1 WHERE at > ?1")?.execute([at])?;
            conn.prepare_cached("DELETE FROM discord_identifies WHERE at <= ?1")?.execute([since])?;
            let before = count(conn, now, window)?;
            if before.count >= most {
                return Ok(before);
            }
            conn.prepare_cached("INSERT INTO discord_identifies (at) VALUES (?1)")?.execute([at])?;
            Ok(Identifies { taken: true, ..count(conn, now, window)? })
        })
    }
}

fn count(conn: &Connection, now: Timestamp, window: Duration) -> Result<Identifies> {
    let since = to_nanos(now.checked_sub(window).unwrap_or(now));
    let row = conn
        .prepare_cached("SELECT count(*), min(at), max(at) FROM discord_identifies WHERE at > ?1")?
        .query_row([since], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?)))?;
    let at = |nanos: Option<i64>| nanos.map(|nanos| from_nanos(nanos).min(now));
    Ok(Identifies { count: row.0, oldest: at(row.1), newest: at(row.2), taken: false })
}
