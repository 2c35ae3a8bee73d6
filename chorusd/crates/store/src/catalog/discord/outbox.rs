//! The outbox: posts to Discord that are stored until they are delivered, in order within each channel.

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::catalog::CatalogDb;
use crate::sqlite::StoreResult;

/// A post to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPost {
    pub channel_id: u64,
    /// Key by which later changes find the post. A post with the key of an existing row replaces it.
    pub about: Option<String>,
    /// JSON.
    pub body: String,
    /// At most 25 characters, never used twice.
    pub nonce: String,
    /// For a notice, the time of the event that it is about.
    pub notice_at: Option<Timestamp>,
}

/// Notices about events that are older than this are dropped.
pub const MAX_NOTICE_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Notices that were dropped because they were too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedNotices {
    pub count: u64,
    /// When the last one was dropped.
    pub last: Option<Timestamp>,
}

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

/// The next post to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePost {
    pub id: i64,
    pub body: String,
    pub nonce: String,
    /// `Some` if the post changes an existing message, with the id of that message; `Some(None)` if that one was never
    /// posted.
    pub changes: Option<Option<u64>>,
    /// Time of the first attempt to send, if there was one: the post may have arrived.
    pub tried_at: Option<Timestamp>,
    /// A message of the channel that is older than this post's message, if it arrived.
    pub after: Option<u64>,
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

/// The table of posts.
#[derive(Debug, Clone)]
pub struct OutboxTable {
    pub(in crate::catalog) db: CatalogDb,
}

impl OutboxTable {
    /// Queues posts, all or none.
    pub fn enqueue(&self, posts: Vec<NewPost>) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| posts.iter().try_for_each(|post| enqueue(conn, post)))
    }

    /// Changes the post with the key `about` to `body`; returns its channel, or `None` if there is no such post.
    pub fn edit(
        &self,
        about: String,
        body: String,
        nonce: String,
    ) -> impl Future<Output = Result<Option<u64>>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            if !edit(conn, &about, &body, &nonce)? {
                return Ok(None);
            }
            let channel = "SELECT channel_id FROM discord_outbox WHERE about = ?1";
            let channel: i64 = conn.prepare_cached(channel)?.query_row([about], |row| row.get(0))?;
            Ok(Some(channel.cast_unsigned()))
        })
    }

    /// Removes the key `about` from its post, which cannot be changed any more.
    pub fn finalize(&self, about: String) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| finalize(conn, &about))
    }

    /// Lists the keys of posts that begin with `prefix`.
    pub async fn list_keys(&self, prefix: String) -> Result<Vec<String>> {
        self.db
            .reader
            .submit(move |conn| {
                let abouts = "SELECT about FROM discord_outbox WHERE substr(about, 1, length(?1)) = ?1 ORDER BY id";
                Ok(conn
                    .prepare_cached(abouts)?
                    .query_map([prefix], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Lists the channels with queued posts.
    pub async fn list_channels(&self) -> Result<Vec<u64>> {
        self.db
            .reader
            .submit(|conn| {
                let channels = "SELECT DISTINCT channel_id FROM discord_outbox WHERE sent_id IS NULL";
                let channels = conn
                    .prepare_cached(channels)?
                    .query_map([], |row| row.get(0).map(i64::cast_unsigned))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(channels)
            })
            .await
    }

    /// Returns the next post of a channel and records the attempt to send it. Drops and counts notices that are too old
    /// and were never attempted.
    pub fn begin_next(
        &self,
        channel: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<DuePost>>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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

    /// Records that a post has certainly not arrived, so that changes apply to its row until the next attempt.
    pub fn mark_unsent(&self, id: i64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("UPDATE discord_outbox SET tried_at = NULL WHERE id = ?1")?.execute([id])?;
            Ok(())
        })
    }

    /// Records that a post was delivered as `message`; deletes a delivered change.
    pub fn mark_sent(&self, id: i64, message: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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

    /// Returns how many notices were dropped because they were too old.
    pub async fn dropped_notices(&self) -> Result<DroppedNotices> {
        self.db
            .reader
            .submit(|conn| {
                let value = |name: &str| {
                    let mut value = conn.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
                    value.query_row([name], |row| row.get::<_, i64>(0)).optional()
                };
                let count = value("notices_dropped")?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
                let last = value("notices_dropped_at")?.filter(|_| count > 0).map(from_nanos);
                Ok(DroppedNotices { count, last })
            })
            .await
    }

    /// Deletes a post that can never be delivered.
    pub fn abandon(&self, id: i64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("DELETE FROM discord_outbox WHERE id = ?1")?.execute([id])?;
            delete_delivered(conn)
        })
    }

    /// Deletes all posts of a channel; returns how many were queued.
    pub fn abandon_channel(&self, channel: u64) -> impl Future<Output = Result<u64>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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
