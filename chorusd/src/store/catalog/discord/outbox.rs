//! What is to be posted: it lasts until it is there, and those of one channel keep their order.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Result;
use crate::store::catalog::Catalog;
use crate::store::journal::{from_nanos, to_nanos};

/// A post on its way into the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPost {
    pub channel_id: u64,
    /// What a later change finds it by. Where a row has this already, the post takes that one's place.
    pub about: Option<String>,
    /// JSON.
    pub body: String,
    /// At most 25 characters, never the same twice.
    pub nonce: String,
    /// Of a notice, when that happened which it tells.
    pub notice_at: Option<Timestamp>,
}

/// How long a notice may wait: what happened longer ago is not news.
pub const MAX_NOTICE_AGE: SignedDuration = SignedDuration::from_hours(24);

/// The notices that were dropped because they were too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedNotices {
    pub count: u64,
    /// When the last one was.
    pub last: Option<Timestamp>,
}

/// Counts notices that are dropped.
pub(in crate::store::catalog) fn add_dropped(conn: &Connection, count: u64, now: Timestamp) -> Result<()> {
    if count > 0 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        conn.prepare_cached("UPDATE counters SET value = value + ?1 WHERE name = 'notices_dropped'")?
            .execute([count])?;
        conn.prepare_cached("UPDATE counters SET value = ?1 WHERE name = 'notices_dropped_at'")?
            .execute([to_nanos(now)])?;
    }
    Ok(())
}

/// A post that is to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePost {
    pub id: i64,
    pub body: String,
    pub nonce: String,
    /// Whether it is to change a message that is there, and which; `Some(None)`: that one was never posted.
    pub changes: Option<Option<u64>>,
    /// When it was first on its way, where it was before: it may have arrived.
    pub tried_at: Option<Timestamp>,
    /// A message of the channel that is older than whatever became of it.
    pub after: Option<u64>,
}

/// Adds a post behind all others. One that is about the same as an earlier row takes its place: in the table, as long as that one
/// has not been on its way, else as a change of its message.
pub(in crate::store::catalog) fn enqueue(conn: &Connection, post: &NewPost) -> Result<()> {
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

/// Has what is about `about` look like `body`, which may leave out what stays; false: there is no such row. Always of the same channel.
pub(in crate::store::catalog) fn edit(conn: &Connection, about: &str, body: &str, nonce: &str) -> Result<bool> {
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

/// Whether there is something about `about`.
pub(in crate::store::catalog) fn has_post_about(conn: &Connection, about: &str) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM discord_outbox WHERE about = ?1")?.exists([about])?)
}

/// What is about `about` will not be changed any more; what waits is still posted.
pub(in crate::store::catalog) fn finalize(conn: &Connection, about: &str) -> Result<()> {
    conn.prepare_cached("UPDATE discord_outbox SET about = NULL WHERE about = ?1")?.execute([about])?;
    delete_delivered(conn)
}

/// Removes what is posted and will not be changed any more.
fn delete_delivered(conn: &Connection) -> Result<()> {
    conn.prepare_cached(
        "DELETE FROM discord_outbox WHERE sent_id IS NOT NULL AND about IS NULL
         AND NOT EXISTS (SELECT 1 FROM discord_outbox later WHERE later.changes = discord_outbox.id)",
    )?
    .execute([])?;
    Ok(())
}

impl Catalog {
    /// Adds posts, all or none.
    pub fn enqueue_posts(&self, posts: Vec<NewPost>) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| posts.iter().try_for_each(|post| enqueue(conn, post)))
    }

    /// Has what is about `about` look like `body`; the channel it is in, or `None`: there is nothing about it.
    pub fn edit_post(
        &self,
        about: String,
        body: String,
        nonce: String,
    ) -> impl Future<Output = Result<Option<u64>>> + Send + use<> {
        self.writer.submit(move |conn| {
            if !edit(conn, &about, &body, &nonce)? {
                return Ok(None);
            }
            let channel = "SELECT channel_id FROM discord_outbox WHERE about = ?1";
            let channel: i64 = conn.prepare_cached(channel)?.query_row([about], |row| row.get(0))?;
            Ok(Some(channel.cast_unsigned()))
        })
    }

    /// What is about `about` will not be changed any more.
    pub fn finalize_post(&self, about: String) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| finalize(conn, &about))
    }

    /// What there are posts about, of those that begin with `prefix`.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn posts_about(&self, prefix: String) -> Result<Vec<String>> {
        self.reader
            .submit(move |conn| {
                let abouts = "SELECT about FROM discord_outbox WHERE substr(about, 1, length(?1)) = ?1 ORDER BY id";
                Ok(conn
                    .prepare_cached(abouts)?
                    .query_map([prefix], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Channels that something is to be posted in.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn channels_with_queued_posts(&self) -> Result<Vec<u64>> {
        self.reader
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

    /// The next post of a channel, which counts as on its way from now on. Notices that are too old by now and have certainly not
    /// arrived are dropped and counted.
    pub fn begin_next_post(
        &self,
        channel: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<DuePost>>> + Send + use<> {
        self.writer.submit(move |conn| {
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

    /// It has certainly not arrived: until it is on its way again, a change changes the row.
    pub fn mark_post_unsent(&self, id: i64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            conn.prepare_cached("UPDATE discord_outbox SET tried_at = NULL WHERE id = ?1")?.execute([id])?;
            Ok(())
        })
    }

    /// A post is there, as this message; one that changed another is done with.
    pub fn mark_post_sent(&self, id: i64, message: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            let sent = to_sqlite_id(message);
            // Whatever is posted behind it in its channel is newer.
            conn.prepare_cached(
                "UPDATE discord_outbox SET after_id = max(coalesce(after_id, 0), ?2) WHERE sent_id IS NULL AND id > ?1
                 AND channel_id = (SELECT channel_id FROM discord_outbox WHERE id = ?1)",
            )?
            .execute(params![id, sent])?;
            // What changed another and had to be posted anew is that other from now on.
            conn.prepare_cached(
                "UPDATE discord_outbox SET sent_id = ?2 WHERE id = (SELECT changes FROM discord_outbox WHERE id = ?1)",
            )?
            .execute(params![id, sent])?;
            conn.prepare_cached("DELETE FROM discord_outbox WHERE id = ?1 AND changes IS NOT NULL")?.execute([id])?;
            conn.prepare_cached("UPDATE discord_outbox SET sent_id = ?2 WHERE id = ?1")?.execute(params![id, sent])?;
            delete_delivered(conn)
        })
    }

    /// Tells how many notices were dropped because they were too old.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn dropped_notices(&self) -> Result<DroppedNotices> {
        self.reader
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

    /// A post will never be there.
    pub fn abandon_post(&self, id: i64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            conn.prepare_cached("DELETE FROM discord_outbox WHERE id = ?1")?.execute([id])?;
            delete_delivered(conn)
        })
    }

    /// Nothing will be posted in a channel any more; says how much waited.
    pub fn abandon_channel(&self, channel: u64) -> impl Future<Output = Result<u64>> + Send + use<> {
        self.writer.submit(move |conn| {
            let waiting = "SELECT count(*) FROM discord_outbox WHERE channel_id = ?1 AND sent_id IS NULL";
            let waiting: u64 = conn.prepare_cached(waiting)?.query_row([to_sqlite_id(channel)], |row| row.get(0))?;
            conn.prepare_cached("DELETE FROM discord_outbox WHERE channel_id = ?1")?
                .execute([to_sqlite_id(channel)])?;
            Ok(waiting)
        })
    }
}

/// An id of Discord as SQLite has numbers; they need 64 bits only in some decades.
fn to_sqlite_id(id: u64) -> i64 {
    id.cast_signed()
}
