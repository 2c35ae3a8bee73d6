//! Messages of channels that were taken up, each once.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::channels::seen;
use super::outbox::{self, NewPost};
use crate::failure::Result;
use crate::store::catalog::Catalog;
use crate::store::journal::to_nanos;

/// A message that is to be taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClaim {
    pub message: u64,
    pub channel: u64,
    pub agent: Uuid,
    /// JSON.
    pub asked: String,
    pub at: Timestamp,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// It waits.
    New,
    /// It was taken up before.
    Known,
    /// Too many wait; it is taken up as dropped.
    Full,
}

/// A message that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenClaim {
    pub message: u64,
    pub channel: u64,
    pub agent: Uuid,
    pub asked: String,
    /// Its turn had begun.
    pub running: bool,
}

const OPEN: &str = "state IN ('queued', 'running')";

impl Catalog {
    /// Takes a message up, and notes that its channel was read so far. Where `most` of its agent wait already it is dropped, and
    /// `full` is posted.
    pub fn claim(
        &self,
        new: NewClaim,
        most: u32,
        full: NewPost,
    ) -> impl Future<Output = Result<Claimed>> + Send + use<> {
        self.writer.submit(move |conn| {
            let claimed = claim(conn, &new, most)?;
            if claimed == Claimed::Full {
                outbox::insert(conn, &full)?;
            }
            seen(conn, new.channel, new.message)?;
            Ok(claimed)
        })
    }

    /// Notes that a channel was read up to this message, and posts what there is to say of it.
    pub fn skip_messages(
        &self,
        channel: u64,
        upto: u64,
        posts: Vec<NewPost>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            seen(conn, channel, upto)?;
            posts.iter().try_for_each(|post| outbox::insert(conn, post))
        })
    }

    /// Notes that the turn of a message has begun.
    pub fn claim_runs(&self, message: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            conn.prepare_cached("UPDATE claims SET state = 'running' WHERE message_id = ?1 AND state = 'queued'")?
                .execute([message])?;
            Ok(())
        })
    }

    /// Changes what is asked by a message whose turn has not begun; false: it has, or the message does not wait.
    pub fn reword_claim(&self, message: u64, asked: String) -> impl Future<Output = Result<bool>> + Send + use<> {
        self.writer.submit(move |conn| {
            let changed = conn
                .prepare_cached("UPDATE claims SET asked = ?2 WHERE message_id = ?1 AND state = 'queued'")?
                .execute(params![message, asked])?;
            Ok(changed == 1)
        })
    }

    /// Is done with a message, and posts what is to be said, in one commit; false: it was done with before, and nothing is posted.
    pub fn settle_claim(&self, message: u64, posts: Vec<NewPost>) -> impl Future<Output = Result<bool>> + Send + use<> {
        self.writer.submit(move |conn| {
            let ended = end(conn, message, "done")?;
            if ended {
                posts.iter().try_for_each(|post| outbox::insert(conn, post))?;
                // An answer is not changed any more.
                posts
                    .iter()
                    .filter_map(|post| post.about.as_deref())
                    .try_for_each(|about| outbox::forget(conn, about))?;
            }
            Ok(ended)
        })
    }

    /// Is done with a message that is not to be answered any more; false: it was done with before.
    pub fn drop_claim(&self, message: u64) -> impl Future<Output = Result<bool>> + Send + use<> {
        self.writer.submit(move |conn| end(conn, message, "dropped"))
    }

    /// Messages that are not answered yet, the oldest first.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn open_claims(&self) -> Result<Vec<OpenClaim>> {
        let wanted = format!(
            "SELECT message_id, channel_id, agent_id, asked, state = 'running' FROM claims WHERE {OPEN}
             ORDER BY message_id"
        );
        self.reader
            .submit(move |conn| {
                Ok(conn.prepare_cached(&wanted)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}

fn claim(conn: &Connection, new: &NewClaim, most: u32) -> Result<Claimed> {
    let waiting = format!("SELECT count(*) FROM claims WHERE {OPEN} AND agent_id = ?1");
    let waiting: u32 = conn.prepare_cached(&waiting)?.query_row([new.agent.as_bytes()], |row| row.get(0))?;
    let full = waiting >= most;
    let (state, asked) = if full { ("dropped", None) } else { ("queued", Some(&new.asked)) };
    let added = conn
        .prepare_cached(
            "INSERT INTO claims (message_id, channel_id, agent_id, state, asked, claimed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (message_id) DO NOTHING",
        )?
        .execute(params![new.message, new.channel, new.agent.as_bytes(), state, asked, to_nanos(new.at)])?;
    Ok(match (added, full) {
        (0, _) => Claimed::Known,
        (_, true) => Claimed::Full,
        _ => Claimed::New,
    })
}

/// What was asked is kept no longer than it is needed.
fn end(conn: &Connection, message: u64, state: &str) -> Result<bool> {
    let ended = conn
        .prepare_cached(&format!("UPDATE claims SET state = ?2, asked = NULL WHERE message_id = ?1 AND {OPEN}"))?
        .execute(params![message, state])?;
    Ok(ended == 1)
}

fn read(row: &Row<'_>) -> rusqlite::Result<OpenClaim> {
    Ok(OpenClaim {
        message: row.get(0)?,
        channel: row.get(1)?,
        agent: Uuid::from_bytes(row.get(2)?),
        asked: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        running: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::OnFatal;
    use crate::store::catalog::discord::ChannelRow;

    fn new(message: u64) -> NewClaim {
        NewClaim {
            message,
            channel: 7,
            agent: Uuid::from_u128(1),
            asked: format!("{message}"),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn post(nonce: &str) -> NewPost {
        NewPost { channel_id: 7, about: None, body: "{}".into(), nonce: nonce.into() }
    }

    #[tokio::test]
    async fn a_message_is_taken_up_once_and_done_with_once() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: OnFatal = Arc::new(|_| {});
        let catalog = Catalog::open(&dir.path().join("chorus.db"), &on_fatal).unwrap();
        let row = ChannelRow { channel: 7, guild: 1, agent: Uuid::from_u128(1), made: true, seen: 10 };
        catalog.put_channel(row).await.unwrap();
        let claim =
            async |message: u64| catalog.claim(new(message), 2, post(&format!("full {message}"))).await.unwrap();
        assert_eq!([claim(11).await, claim(12).await], [Claimed::New, Claimed::New]);
        assert_eq!(
            [claim(11).await, claim(13).await, claim(13).await],
            [Claimed::Known, Claimed::Full, Claimed::Known]
        );
        assert_eq!(catalog.channel(7).await.unwrap().unwrap().seen, 13);
        catalog.put_channel(row).await.unwrap();
        catalog.seen_in_channel(7, 3).await.unwrap();
        assert_eq!(catalog.channel(7).await.unwrap().unwrap().seen, 13, "it never goes back");
        catalog.claim_runs(11).await.unwrap();
        let changed =
            [catalog.reword_claim(11, "x".into()).await.unwrap(), catalog.reword_claim(12, "y".into()).await.unwrap()];
        assert_eq!(changed, [false, true]);
        let open: Vec<_> = catalog.open_claims().await.unwrap();
        let open: Vec<_> = open.iter().map(|claim| (claim.message, &*claim.asked, claim.running)).collect();
        assert_eq!(open, [(11, "11", true), (12, "y", false)]);
        assert!(catalog.settle_claim(11, vec![post("answer")]).await.unwrap());
        assert!(!catalog.settle_claim(11, vec![post("again")]).await.unwrap());
        assert!(catalog.drop_claim(12).await.unwrap() && !catalog.drop_claim(12).await.unwrap());
        assert!(catalog.open_claims().await.unwrap().is_empty());
        let posts = catalog.channels_to_post_in().await.unwrap();
        assert_eq!((posts, claim(14).await, claim(11).await), (vec![7], Claimed::New, Claimed::Known));
        assert!(catalog.remove_channel(7).await.unwrap() && !catalog.remove_channel(7).await.unwrap());
    }
}
