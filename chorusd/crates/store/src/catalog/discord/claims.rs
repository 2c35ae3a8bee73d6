//! Claims: messages from channels that were taken for processing.

use chorus_base::error::Error;
use chorus_catalog::discord::{ClaimOutcome, ClaimTable, NewClaim, NewPost, OpenClaim};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{KEY_RETENTION_DAYS, to_nanos};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::channels::{advance_seen, advance_skipped};
use super::outbox;
use crate::catalog::CatalogDb;
use crate::sqlite::StoreResult;

const OPEN_STATES: &str = "state IN ('queued', 'running')";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteClaimTable {
    pub(super) db: CatalogDb,
}

impl ClaimTable for SqliteClaimTable {
    fn claim(&self, new: NewClaim, most: u32, full: NewPost) -> CatalogWrite<ClaimOutcome> {
        self.db.write(move |conn| {
            let claimed = insert_claim(conn, &new, most)?;
            let told = full.about.as_deref().filter(|_| claimed != ClaimOutcome::AlreadyClaimed);
            let told = told.map(|about| Ok::<_, Error>((about, outbox::has_post_about(conn, about)?))).transpose()?;
            match (claimed, told) {
                (ClaimOutcome::QueueFull, None | Some((_, false))) => outbox::enqueue(conn, &full)?,
                (ClaimOutcome::Queued, Some((about, true))) => outbox::finalize(conn, about)?,
                _ => {}
            }
            if new.contiguous {
                advance_seen(conn, new.channel, new.message)?;
            }
            Ok(claimed)
        })
    }

    fn skip_messages(&self, channel: u64, upto: u64, posts: Vec<NewPost>) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            advance_seen(conn, channel, upto)?;
            advance_skipped(conn, channel, upto)?;
            posts.iter().try_for_each(|post| outbox::enqueue(conn, post))
        })
    }

    fn prune(&self, now: Timestamp) -> CatalogWrite<()> {
        let before = to_nanos(now) - KEY_RETENTION_DAYS * 86_400 * 1_000_000_000;
        self.db.write(move |conn| {
            let old = format!("NOT {OPEN_STATES} AND claimed_at < ?1");
            let newest = format!(
                "SELECT max(message_id) FROM claims
                 WHERE channel_id = discord_channels.channel_id AND {old} AND message_id <= seen"
            );
            let skip = format!("UPDATE discord_channels SET skipped = max(skipped, coalesce(({newest}), 0))");
            conn.execute(&skip, [before])?;
            let unread = "SELECT 1 FROM discord_channels
                          WHERE discord_channels.channel_id = claims.channel_id AND seen < claims.message_id";
            conn.execute(&format!("DELETE FROM claims WHERE {old} AND NOT EXISTS ({unread})"), [before])?;
            Ok(())
        })
    }

    fn mark_running(&self, message: u64) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("UPDATE claims SET state = 'running' WHERE message_id = ?1 AND state = 'queued'")?
                .execute([message])?;
            Ok(())
        })
    }

    fn update_request(&self, message: u64, asked: String) -> CatalogWrite<bool> {
        self.db.write(move |conn| {
            let changed = conn
                .prepare_cached("UPDATE claims SET asked = ?2 WHERE message_id = ?1 AND state = 'queued'")?
                .execute(params![message, asked])?;
            Ok(changed == 1)
        })
    }

    fn finish(&self, message: u64, posts: Vec<NewPost>) -> CatalogWrite<bool> {
        self.db.write(move |conn| {
            let ended = close_claim(conn, message, "done")?;
            if ended {
                posts.iter().try_for_each(|post| outbox::enqueue(conn, post))?;
                // A reply is not changed any more.
                posts
                    .iter()
                    .filter_map(|post| post.about.as_deref())
                    .try_for_each(|about| outbox::finalize(conn, about))?;
            }
            Ok(ended)
        })
    }

    fn finish_unanswered(&self, message: u64) -> CatalogWrite<bool> {
        self.db.write(move |conn| close_claim(conn, message, "dropped"))
    }

    fn claimed_after(&self, channel: u64, after: u64) -> CatalogRead<'_, Vec<u64>> {
        self.db.read(move |conn| {
            let taken = "SELECT message_id FROM claims WHERE message_id > ?2 AND channel_id = ?1";
            let mut taken = conn.prepare_cached(taken)?;
            let taken = taken.query_map([channel, after], |row| row.get(0))?;
            Ok(taken.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn list_open(&self) -> CatalogRead<'_, Vec<OpenClaim>> {
        let wanted = format!(
            "SELECT message_id, channel_id, agent_id, asked, state = 'running' FROM claims WHERE {OPEN_STATES}
             ORDER BY message_id"
        );
        self.db.read(move |conn| {
            Ok(conn.prepare_cached(&wanted)?.query_map([], read_claim)?.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn insert_claim(conn: &Connection, new: &NewClaim, most: u32) -> StoreResult<ClaimOutcome> {
    let skipped = "SELECT 1 FROM discord_channels WHERE channel_id = ?1 AND skipped >= ?2";
    if conn.prepare_cached(skipped)?.exists([new.channel, new.message])? {
        return Ok(ClaimOutcome::AlreadyClaimed);
    }
    let waiting = format!("SELECT count(*) FROM claims WHERE {OPEN_STATES} AND agent_id = ?1");
    let waiting: u32 = conn.prepare_cached(&waiting)?.query_row([new.agent.as_bytes()], |row| row.get(0))?;
    let full = waiting >= most;
    let (state, asked) = if full { ("dropped", None) } else { ("queued", Some(&new.request)) };
    let added = conn
        .prepare_cached(
            "INSERT INTO claims (message_id, channel_id, agent_id, state, asked, claimed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (message_id) DO NOTHING",
        )?
        .execute(params![new.message, new.channel, new.agent.as_bytes(), state, asked, to_nanos(new.at)])?;
    Ok(match (added, full) {
        (0, _) => ClaimOutcome::AlreadyClaimed,
        (_, true) => ClaimOutcome::QueueFull,
        _ => ClaimOutcome::Queued,
    })
}

/// Finishes a claim and deletes the request, which is not needed any more.
fn close_claim(conn: &Connection, message: u64, state: &str) -> StoreResult<bool> {
    let ended = conn
        .prepare_cached(&format!("UPDATE claims SET state = ?2, asked = NULL WHERE message_id = ?1 AND {OPEN_STATES}"))?
        .execute(params![message, state])?;
    Ok(ended == 1)
}

fn read_claim(row: &Row<'_>) -> rusqlite::Result<OpenClaim> {
    Ok(OpenClaim {
        message: row.get(0)?,
        channel: row.get(1)?,
        agent: Uuid::from_bytes(row.get(2)?),
        request: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        running: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chorus_catalog::discord::{ChannelRow, DiscordTables};

    use super::*;
    use crate::OnFatal;
    use crate::catalog::SqliteCatalog;

    fn new(message: u64) -> NewClaim {
        NewClaim {
            message,
            channel: 7,
            agent: Uuid::from_u128(1),
            request: format!("{message}"),
            at: Timestamp::UNIX_EPOCH,
            contiguous: true,
        }
    }

    fn post(nonce: &str) -> NewPost {
        NewPost { channel_id: 7, about: None, body: "{}".into(), nonce: nonce.into(), notice_at: None }
    }

    fn open(dir: &tempfile::TempDir) -> DiscordTables {
        let on_fatal: OnFatal = Arc::new(|_| {});
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let path = dir.path().join("chorus.db");
        SqliteCatalog::open(&path, &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap().0.tables.discord
    }

    const ROW: ChannelRow = ChannelRow {
        channel: 7,
        guild: 1,
        agent: Uuid::from_u128(1),
        created_by_us: true,
        seen: 10,
        skipped: 10,
        parent: None,
        user: None,
    };

    #[tokio::test]
    async fn a_message_is_taken_up_once_and_done_with_once() {
        let dir = tempfile::tempdir().unwrap();
        let discord = open(&dir);
        discord.channels.upsert(ROW).await.unwrap();
        let claim =
            async |message: u64| discord.claims.claim(new(message), 2, post(&format!("full {message}"))).await.unwrap();
        assert_eq!([claim(11).await, claim(12).await], [ClaimOutcome::Queued, ClaimOutcome::Queued]);
        assert_eq!(
            [claim(11).await, claim(13).await, claim(13).await],
            [ClaimOutcome::AlreadyClaimed, ClaimOutcome::QueueFull, ClaimOutcome::AlreadyClaimed]
        );
        assert_eq!(discord.channels.get(7).await.unwrap().unwrap().seen, 13);
        discord.channels.upsert(ROW).await.unwrap();
        discord.channels.mark_seen(7, 3).await.unwrap();
        assert_eq!(discord.channels.get(7).await.unwrap().unwrap().seen, 13, "it never goes back");
        discord.claims.mark_running(11).await.unwrap();
        let changed = [
            discord.claims.update_request(11, "x".into()).await.unwrap(),
            discord.claims.update_request(12, "y".into()).await.unwrap(),
        ];
        assert_eq!(changed, [false, true]);
        let open: Vec<_> = discord.claims.list_open().await.unwrap();
        let open: Vec<_> = open.iter().map(|claim| (claim.message, &*claim.request, claim.running)).collect();
        assert_eq!(open, [(11, "11", true), (12, "y", false)]);
        assert!(discord.claims.finish(11, vec![post("answer")]).await.unwrap());
        assert!(!discord.claims.finish(11, vec![post("again")]).await.unwrap());
        assert!(
            discord.claims.finish_unanswered(12).await.unwrap() && !discord.claims.finish_unanswered(12).await.unwrap()
        );
        assert!(discord.claims.list_open().await.unwrap().is_empty());
        let posts = discord.outbox.list_channels().await.unwrap();
        assert_eq!(
            (posts, claim(14).await, claim(11).await),
            (vec![7], ClaimOutcome::Queued, ClaimOutcome::AlreadyClaimed)
        );
        assert!(discord.channels.delete(7).await.unwrap() && !discord.channels.delete(7).await.unwrap());
    }

    #[tokio::test]
    async fn what_was_passed_over_is_not_taken_up_and_what_was_not_read_stays_unread() {
        let dir = tempfile::tempdir().unwrap();
        let discord = open(&dir);
        discord.channels.upsert(ROW).await.unwrap();
        let claim = async |new: NewClaim| discord.claims.claim(new, 100, post("full")).await.unwrap();
        assert_eq!(claim(new(10)).await, ClaimOutcome::AlreadyClaimed, "it was there before");
        assert_eq!(claim(NewClaim { contiguous: false, ..new(40) }).await, ClaimOutcome::Queued);
        assert_eq!(discord.channels.get(7).await.unwrap().unwrap().seen, 10);
        assert_eq!(discord.claims.claimed_after(7, 10).await.unwrap(), [40]);
        discord.claims.skip_messages(7, 20, vec![post("skipped")]).await.unwrap();
        assert_eq!([claim(new(20)).await, claim(new(21)).await], [ClaimOutcome::AlreadyClaimed, ClaimOutcome::Queued]);
        let row = discord.channels.get(7).await.unwrap().unwrap();
        assert_eq!((row.seen, row.skipped), (21, 20));
        // Old claims are deleted if all earlier messages were read, and are not claimed again.
        for message in [21, 40] {
            discord.claims.finish_unanswered(message).await.unwrap();
        }
        let days = |days: i64| Timestamp::from_second(days * 86_400).unwrap();
        discord.claims.prune(days(KEY_RETENTION_DAYS)).await.unwrap();
        assert_eq!(discord.claims.claimed_after(7, 0).await.unwrap(), [21, 40]);
        discord.claims.prune(days(KEY_RETENTION_DAYS + 1)).await.unwrap();
        assert_eq!(discord.claims.claimed_after(7, 0).await.unwrap(), [40]);
        assert_eq!([claim(new(21)).await, claim(new(22)).await], [ClaimOutcome::AlreadyClaimed, ClaimOutcome::Queued]);
        discord.claims.prune(days(KEY_RETENTION_DAYS + 1)).await.unwrap();
        assert_eq!(discord.claims.claimed_after(7, 0).await.unwrap(), [22, 40], "what waits is never forgotten");
    }

    #[tokio::test]
    async fn that_too_many_wait_is_said_once_until_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let discord = open(&dir);
        discord.channels.upsert(ROW).await.unwrap();
        let claim = async |message: u64| {
            let full = NewPost { about: Some("full:7".into()), ..post(&format!("full {message}")) };
            discord.claims.claim(new(message), 1, full).await.unwrap()
        };
        let posts = async || {
            let mut count = 0;
            while let Some(due) = discord.outbox.begin_next(7, Timestamp::UNIX_EPOCH).await.unwrap() {
                discord.outbox.mark_sent(due.id, 1000).await.unwrap();
                count += 1;
            }
            count
        };
        assert_eq!(
            [claim(11).await, claim(12).await, claim(13).await],
            [ClaimOutcome::Queued, ClaimOutcome::QueueFull, ClaimOutcome::QueueFull]
        );
        assert_eq!(posts().await, 1);
        assert_eq!((claim(14).await, posts().await), (ClaimOutcome::QueueFull, 0));
        discord.claims.finish_unanswered(11).await.unwrap();
        assert_eq!([claim(15).await, claim(16).await], [ClaimOutcome::Queued, ClaimOutcome::QueueFull]);
        assert_eq!(posts().await, 1, "it is said anew");
    }
}
