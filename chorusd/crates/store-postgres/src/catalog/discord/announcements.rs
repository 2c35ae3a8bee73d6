//! Announcements that a node posts about its own events: each node has its own numbers of events.

use chorus_catalog::discord::{AnnouncementLog, Announcements};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::to_nanos;

use super::{PostgresDiscordTables, posts};
use crate::rows::to_bigint;
use crate::statement::call;

impl AnnouncementLog for PostgresDiscordTables {
    fn enqueue(&self, announcements: Announcements) -> CatalogWrite<()> {
        let Announcements { posts, upto, starts, dropped } = announcements;
        let node = &self.db.node.id;
        let mut calls = vec![posts::enqueue(posts)];
        if let Some((count, at)) = dropped {
            let sql = "SELECT add_dropped($1, $2, $3)";
            calls.push(call!(sql, node.clone(), to_bigint(count), to_nanos(at)));
        }
        let sql = "INSERT INTO discord_nodes AS n (node, last_event, last_starts) VALUES ($1, $2, $3)
             ON CONFLICT (node) DO UPDATE SET last_event = coalesce($2, n.last_event),
                 last_starts = coalesce($3, n.last_starts)";
        calls.push(call!(sql, node.clone(), upto.map(to_bigint), starts));
        self.db.write(Ok(None), calls)
    }

    fn last_event(&self) -> CatalogRead<'_, Option<u64>> {
        Box::pin(async move {
            let sql = "SELECT last_event FROM discord_nodes WHERE node = $1";
            let rows = self.db.read(sql, &[&self.db.node.id]).await?;
            Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(i64::cast_unsigned))
        })
    }

    fn last_starts(&self) -> CatalogRead<'_, Option<String>> {
        Box::pin(async move {
            let sql = "SELECT last_starts FROM discord_nodes WHERE node = $1";
            let rows = self.db.read(sql, &[&self.db.node.id]).await?;
            Ok(rows.first().and_then(|row| row.get(0)))
        })
    }
}
