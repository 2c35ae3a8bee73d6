//! The outbox: posts to Discord that are stored until they are delivered.

use chorus_catalog::discord::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost, OutboxTable};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::catalog::CatalogDb;
use crate::sqlite::StoreResult;

/// Adds to the counter of dropped notices.
pub(in crate::catalog) fn add_dropped(conn: &Connection, count: u64, now: Timestamp) -> StoreResult<()> {
    if count > 0 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        conn.prepare_cached("UPDATE counters SET value = value + ?1 WHERE name = 'notices_dropped'")?
            .execute([count])?;
        conn.prepare_cached("UPDATE counters SET value = ?1 WHERE name = 'notices_dropped_at'")?
            .execute([to_nanos(now)])?;
    }
    Ok(())
}

/// Queues a post after all others. If a row has the same `about` key, changes that row as long as it was never
/// attempted, and else queues a change of its message.
pub(in crate::catalog) fn enqueue(conn: &Connection, post: &NewPost) -> StoreResult<()> {
    if let Some(about) = &post.about
        && edit(conn, about, &post.body, &post.nonce)?
    {
        return Ok(());
    }
    conn.prepare_cached(
        "INSERT INTO discord_outbox (channel_id, about, body, nonce, notice_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        to_sqlite_id(post.channel_id),
        post.about,
        post.body,
        post.nonce,
        post.notice_at.map(to_nanos)
    ])?;
    Ok(())
}

/// Changes the post with the key `about` to `body`, a JSON patch; returns false if there is none. The channel stays the
/// same.
pub(in crate::catalog) fn edit(conn: &Connection, about: &str, body: &str, nonce: &str) -> StoreResult<bool> {
    let found = "SELECT id, tried_at IS NULL AND sent_id IS NULL FROM discord_outbox WHERE about = ?1";
    let found: Option<(i64, bool)> =
        conn.prepare_cached(found)?.query_row([about], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((id, untouched)) = found else { return Ok(false) };
    let here = if untouched { "id = ?1" } else { "changes = ?1 AND tried_at IS NULL" };
    let changed = conn
        .prepare_cached(&format!("UPDATE discord_outbox SET body = json_patch(body, ?2), nonce = ?3 WHERE {here}"))?
        .execute(params![id, body, nonce])?;
    if changed == 0 {
        conn.prepare_cached(
            "INSERT INTO discord_outbox (channel_id, body, nonce, changes)
             SELECT channel_id, ?2, ?3, id FROM discord_outbox WHERE id = ?1",
        )?
        .execute(params![id, body, nonce])?;
    }
    Ok(true)
}

/// Returns whether there is a post with the key `about`.
pub(in crate::catalog) fn has_post_about(conn: &Connection, about: &str) -> StoreResult<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM discord_outbox WHERE about = ?1")?.exists([about])?)
}

/// Removes the key `about` from its post, which cannot be changed any more; queued posts are still sent.
pub(in crate::catalog) fn finalize(conn: &Connection, about: &str) -> StoreResult<()> {
    conn.prepare_cached("UPDATE discord_outbox SET about = NULL WHERE about = ?1")?.execute([about])?;
    delete_delivered(conn)
}

/// Deletes rows that are delivered and cannot be changed any more.
fn delete_delivered(conn: &Connection) -> StoreResult<()> {
    conn.prepare_cached(
        "DELETE FROM discord_outbox WHERE sent_id IS NOT NULL AND about IS NULL
         AND NOT EXISTS (SELECT 1 FROM discord_outbox later WHERE later.changes = discord_outbox.id)",
    )?
    .execute([])?;
    Ok(())
}

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteOutboxTable {
    pub(super) db: CatalogDb,
}

impl OutboxTable for SqliteOutboxTable {
    fn enqueue(&self, posts: Vec<NewPost>) -> CatalogWrite<()> {
        self.db.write(move |conn| posts.iter().try_for_each(|post| enqueue(conn, post)))
    }

    fn edit(&self, about: String, body: String, nonce: String) -> CatalogWrite<Option<u64>> {
        self.db.write(move |conn| {
            if !edit(conn, &about, &body, &nonce)? {
                return Ok(None);
            }
            let channel = "SELECT channel_id FROM discord_outbox WHERE about = ?1";
            let channel: i64 = conn.prepare_cached(channel)?.query_row([about], |row| row.get(0))?;
            Ok(Some(channel.cast_unsigned()))
        })
    }

    fn finalize(&self, about: String) -> CatalogWrite<()> {
        self.db.write(move |conn| finalize(conn, &about))
    }

    fn list_keys(&self, prefix: String) -> CatalogRead<'_, Vec<String>> {
        self.db.read(move |conn| {
            let abouts = "SELECT about FROM discord_outbox WHERE substr(about, 1, length(?1)) = ?1 ORDER BY id";
            Ok(conn.prepare_cached(abouts)?.query_map([prefix], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn list_channels(&self) -> CatalogRead<'_, Vec<u64>> {
        self.db.read(|conn| {
            let channels = "SELECT DISTINCT channel_id FROM discord_outbox WHERE sent_id IS NULL";
            let channels = conn
                .prepare_cached(channels)?
                .query_map([], |row| row.get(0).map(i64::cast_unsigned))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(channels)
        })
    }

    fn begin_next(&self, channel: u64, now: Timestamp) -> CatalogWrite<Option<DuePost>> {
        self.db.write(move |conn| {
            let oldest = now.checked_sub(MAX_NOTICE_AGE).unwrap_or(Timestamp::MIN);
            let stale = "DELETE FROM discord_outbox
                         WHERE channel_id = ?1 AND sent_id IS NULL AND tried_at IS NULL AND notice_at < ?2";
            let stale = conn.prepare_cached(stale)?.execute(params![to_sqlite_id(channel), to_nanos(oldest)])?;
            add_dropped(conn, stale as u64, now)?;
            let next =
                "SELECT post.id, post.body, post.nonce, post.changes, changed.sent_id, post.tried_at, post.after_id
                        FROM discord_outbox post LEFT JOIN discord_outbox changed ON changed.id = post.changes
                        WHERE post.channel_id = ?1 AND post.sent_id IS NULL ORDER BY post.id LIMIT 1";
            let due = conn.prepare_cached(next)?.query_row([to_sqlite_id(channel)], |row| {
                let changes: Option<i64> = row.get(3)?;
                let changed: Option<i64> = row.get(4)?;
                Ok(DuePost {
                    id: row.get(0)?,
                    body: row.get(1)?,
                    nonce: row.get(2)?,
                    changes: changes.map(|_| changed.map(i64::cast_unsigned)),
                    tried_at: row.get::<_, Option<i64>>(5)?.map(from_nanos),
                    after: row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned),
                })
            });
            let due = due.optional()?;
            if let Some(due) = due.as_ref().filter(|due| due.tried_at.is_none()) {
                conn.prepare_cached("UPDATE discord_outbox SET tried_at = ?2 WHERE id = ?1")?
                    .execute(params![due.id, to_nanos(now)])?;
            }
            Ok(due)
        })
    }

    fn mark_unsent(&self, id: i64) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("UPDATE discord_outbox SET tried_at = NULL WHERE id = ?1")?.execute([id])?;
            Ok(())
        })
    }

    fn mark_sent(&self, id: i64, message: u64) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            let sent = to_sqlite_id(message);
            // Everything posted later in this channel has a higher id.
            conn.prepare_cached(
                "UPDATE discord_outbox SET after_id = max(coalesce(after_id, 0), ?2) WHERE sent_id IS NULL AND id > ?1
                 AND channel_id = (SELECT channel_id FROM discord_outbox WHERE id = ?1)",
            )?
            .execute(params![id, sent])?;
            // If a change had to be posted as a new message, that message replaces the changed one.
            conn.prepare_cached(
                "UPDATE discord_outbox SET sent_id = ?2 WHERE id = (SELECT changes FROM discord_outbox WHERE id = ?1)",
            )?
            .execute(params![id, sent])?;
            conn.prepare_cached("DELETE FROM discord_outbox WHERE id = ?1 AND changes IS NOT NULL")?.execute([id])?;
            conn.prepare_cached("UPDATE discord_outbox SET sent_id = ?2 WHERE id = ?1")?.execute(params![id, sent])?;
            delete_delivered(conn)
        })
    }

    fn dropped_notices(&self) -> CatalogRead<'_, DroppedNotices> {
        self.db.read(|conn| {
            let value = |name: &str| {
                let mut value = conn.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
                value.query_row([name], |row| row.get::<_, i64>(0)).optional()
            };
            let count = value("notices_dropped")?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
            let last = value("notices_dropped_at")?.filter(|_| count > 0).map(from_nanos);
            Ok(DroppedNotices { count, last })
        })
    }

    fn abandon(&self, id: i64) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("DELETE FROM discord_outbox WHERE id = ?1")?.execute([id])?;
            delete_delivered(conn)
        })
    }

    fn abandon_channel(&self, channel: u64) -> CatalogWrite<u64> {
        self.db.write(move |conn| {
            let waiting = "SELECT count(*) FROM discord_outbox WHERE channel_id = ?1 AND sent_id IS NULL";
            let waiting: u64 = conn.prepare_cached(waiting)?.query_row([to_sqlite_id(channel)], |row| row.get(0))?;
            conn.prepare_cached("DELETE FROM discord_outbox WHERE channel_id = ?1")?
                .execute([to_sqlite_id(channel)])?;
            Ok(waiting)
        })
    }
}

/// Stores a Discord id in a signed SQLite integer; ids will need the 64th bit only in some decades.
fn to_sqlite_id(id: u64) -> i64 {
    id.cast_signed()
}
