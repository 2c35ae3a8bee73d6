//! Identifies of the gateway, one row each. Only the holder of the gateway adds some.

use std::time::Duration;

use chorus_catalog::discord::{IdentifyTable, IdentifyWindow};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;

use super::PostgresDiscordTables;
use crate::statement::call;

impl IdentifyTable for PostgresDiscordTables {
    fn count_in_window(&self, now: Timestamp, window: Duration) -> CatalogRead<'_, IdentifyWindow> {
        Box::pin(async move {
            let sql = "SELECT ARRAY[count(*), min(at), max(at)] FROM discord_identifies WHERE at > $1";
            let rows = self.db.read(sql, &[&since(now, window)]).await?;
            let counted: Vec<Option<i64>> = rows.first().map(|row| row.get(0)).unwrap_or_default();
            Ok(read_window(&counted, now))
        })
    }

    fn try_record(&self, now: Timestamp, window: Duration, most: u32) -> CatalogWrite<IdentifyWindow> {
        let recorded = self.write_as_gateway(
            Ok(()),
            Vec::new(),
            |(node, token)| {
                call!(
                    "SELECT keep_result($1, $2, record_identify($3, $4, $5))",
                    node,
                    token,
                    to_nanos(now),
                    since(now, window),
                    i64::from(most),
                )
            },
            <[_]>::to_vec,
        );
        Box::pin(async move { Ok(read_window(&recorded.await?, now)) })
    }
}

fn since(now: Timestamp, window: Duration) -> i64 {
    to_nanos(now.checked_sub(window).unwrap_or(now))
}

/// Reads the number, the oldest, the newest, and whether one was recorded.
fn read_window(counted: &[Option<i64>], now: Timestamp) -> IdentifyWindow {
    let number = |place: usize| counted.get(place).copied().flatten();
    let at = |nanos: Option<i64>| nanos.map(|nanos| from_nanos(nanos).min(now));
    IdentifyWindow {
        count: number(0).and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        oldest: at(number(1)),
        newest: at(number(2)),
        recorded: number(3) == Some(1),
    }
}
