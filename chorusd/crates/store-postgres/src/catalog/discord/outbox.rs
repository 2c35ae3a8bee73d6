//! The outbox. Any node queues and changes posts; the holder of a channel's lease sends them.

use chorus_base::error::Error;
use chorus_catalog::discord::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost, OutboxTable};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{DiscordLease, PostgresDiscordTables, posts};
use crate::catalog::text_prefix::prefix_end;
use crate::statement::call;

impl OutboxTable for PostgresDiscordTables {
    fn enqueue(&self, posts: Vec<NewPost>) -> CatalogWrite<()> {
        self.db.write(Ok(None), vec![posts::enqueue(posts)])
    }

    fn edit(&self, about: String, body: String, nonce: String) -> CatalogWrite<Option<u64>> {
        let edit = |(node, token)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[edit_post($3, $4, $5)])";
            call!(sql, node, token, about, body, nonce)
        };
        self.db.write_with_result(Ok(None), Vec::new(), edit, |channel| {
            channel.first().copied().flatten().map(i64::cast_unsigned)
        })
    }

    fn finalize(&self, about: String) -> CatalogWrite<()> {
        self.db.write(Ok(None), vec![call!("SELECT finalize_post($1)", about)])
    }

    fn list_keys(&self, prefix: String) -> CatalogRead<'_, Vec<String>> {
        Box::pin(async move {
            let end = prefix_end(&prefix);
            let sql = if end.is_some() {
                "SELECT about FROM discord_outbox WHERE about >= $1 AND about < $2 ORDER BY id"
            } else {
                "SELECT about FROM discord_outbox WHERE about >= $1 AND $2::text IS NULL ORDER BY id"
            };
            Ok(self.db.read(sql, &[&prefix, &end]).await?.iter().map(|row| row.get(0)).collect())
        })
    }

    fn list_channels(&self) -> CatalogRead<'_, Vec<u64>> {
        Box::pin(async move {
            // One step of the index for each channel, however many posts it has.
            let sql = "WITH RECURSIVE waiting AS (
                     (SELECT channel_id FROM discord_outbox WHERE sent_id IS NULL ORDER BY channel_id LIMIT 1)
                     UNION ALL
                     SELECT (SELECT channel_id FROM discord_outbox WHERE sent_id IS NULL
                                 AND channel_id > waiting.channel_id ORDER BY channel_id LIMIT 1)
                     FROM waiting WHERE waiting.channel_id IS NOT NULL)
                 SELECT channel_id FROM waiting WHERE channel_id IS NOT NULL";
            Ok(self.db.read(sql, &[]).await?.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect())
        })
    }

    fn begin_next(&self, channel: u64, now: Timestamp) -> CatalogWrite<Option<DuePost>> {
        let lease = DiscordLease::Channel(channel);
        let (fence, epoch) = match self.leases.fence(lease) {
            Ok(fenced) => fenced,
            Err(failure) => return Box::pin(async move { Err(failure) }),
        };
        let oldest = now.checked_sub(MAX_NOTICE_AGE).unwrap_or(Timestamp::MIN);
        let (node, token) = self.db.result_key();
        let find = "SELECT post.* FROM write_results kept, due_post(kept.result[1], kept.result[2]) post
             WHERE kept.node = $1 AND kept.token = $2";
        let find = call!(find, node.clone(), token);
        let begin = call!(
            "SELECT * FROM begin_post($1, $2, $3, $4, $5, $6)",
            channel.cast_signed(),
            epoch,
            to_nanos(now),
            to_nanos(oldest),
            node,
            token,
        );
        let begun = self.db.writer.submit(
            Ok(None),
            vec![fence, begin],
            Some(find),
            |rows| {
                let rows = rows.last().ok_or_else(|| Error::internal("a result is missing"))?;
                Ok(rows.first().map(read_due))
            },
            |_| (),
        );
        self.leases.watch(vec![(lease, epoch)], begun)
    }

    fn mark_unsent(&self, id: i64) -> CatalogWrite<()> {
        let (node, boot) = self.db.node();
        let calls = vec![
            call!("SELECT require_sender($1, $2, $3)", id, node, boot),
            call!("UPDATE discord_outbox SET tried_at = NULL WHERE id = $1", id),
        ];
        self.db.write(Ok(None), calls)
    }

    fn mark_sent(&self, id: i64, message: u64) -> CatalogWrite<()> {
        let (node, boot) = self.db.node();
        let sql = "SELECT mark_post_sent($1, $2, $3, $4)";
        self.db.write(Ok(None), vec![call!(sql, id, message.cast_signed(), node, boot)])
    }

    fn dropped_notices(&self) -> CatalogRead<'_, DroppedNotices> {
        Box::pin(async move {
            let sql = "SELECT coalesce(sum(dropped_notices), 0)::bigint, max(dropped_at) FROM discord_nodes";
            let rows = self.db.read(sql, &[]).await?;
            Ok(rows.first().map_or_else(DroppedNotices::default, |row| DroppedNotices {
                count: row.get::<_, i64>(0).cast_unsigned(),
                last: row.get::<_, Option<i64>>(1).map(from_nanos),
            }))
        })
    }

    fn abandon(&self, id: i64) -> CatalogWrite<()> {
        let (node, boot) = self.db.node();
        self.db.write(Ok(None), vec![call!("SELECT abandon_post($1, $2, $3)", id, node, boot)])
    }

    fn abandon_channel(&self, channel: u64) -> CatalogWrite<u64> {
        let abandon = |(node, token)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[abandon_posts($3)])";
            call!(sql, node, token, channel.cast_signed())
        };
        self.write_as(DiscordLease::Channel(channel), Ok(()), Vec::new(), abandon, |waiting| {
            waiting.first().copied().flatten().unwrap_or(0).cast_unsigned()
        })
    }
}

fn read_due(row: &Row) -> DuePost {
    let id = |column: usize| row.get::<_, Option<i64>>(column).map(i64::cast_unsigned);
    DuePost {
        id: row.get(0),
        body: row.get(1),
        nonce: row.get(2),
        changes: row.get::<_, Option<i64>>(3).map(|_| id(4)),
        tried_at: row.get::<_, Option<i64>>(5).map(from_nanos),
        after: id(6),
    }
}
