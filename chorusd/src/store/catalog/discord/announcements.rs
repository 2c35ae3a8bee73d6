//! What the daemon tells in channels, each thing once: how far its events were told is noted with the posts.

use jiff::Timestamp;
use rusqlite::Connection;

use super::channels::{self, ChannelRow};
use super::outbox::{self, NewPost};
use crate::error::Result;
use crate::store::catalog::{AgentRow, Catalog, agents, settings};

/// The newest event that was told, or needed not to be.
const LAST_EVENT_KEY: &str = "discord.events";

/// When channels last heard that the daemon has started: JSON.
const LAST_STARTS_KEY: &str = "discord.starts";

/// What is to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcements {
    pub posts: Vec<NewPost>,
    /// The newest event that these are of; left out, that stays.
    pub upto: Option<u64>,
    /// When channels last heard that the daemon has started; left out, that stays.
    pub starts: Option<String>,
    /// Notices that are too old to be told, and when that was found.
    pub dropped: Option<(u64, Timestamp)>,
}

impl Catalog {
    /// Keeps what is to be told, and that it was, in one commit.
    pub fn enqueue_announcements(&self, news: Announcements) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            news.posts.iter().try_for_each(|post| outbox::enqueue(conn, post))?;
            if let Some((count, now)) = news.dropped {
                outbox::add_dropped(conn, count, now)?;
            }
            if let Some(upto) = news.upto {
                settings::upsert(conn, LAST_EVENT_KEY, Some(&upto.to_string()))?;
            }
            match &news.starts {
                Some(starts) => settings::upsert(conn, LAST_STARTS_KEY, Some(starts)),
                None => Ok(()),
            }
        })
    }

    /// The newest event that was told; `None`: none ever.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn last_announced_event(&self) -> Result<Option<u64>> {
        Ok(self.setting(LAST_EVENT_KEY).await?.and_then(|seq| seq.parse().ok()))
    }

    /// When channels last heard that the daemon has started.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn last_announced_starts(&self) -> Result<Option<String>> {
        self.setting(LAST_STARTS_KEY).await
    }

    /// Adds an agent with its channel, and what is said there first, in one commit.
    pub fn upsert_agent_with_channel(
        &self,
        agent: AgentRow,
        channel: ChannelRow,
        welcome: NewPost,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn: &Connection| {
            agents::upsert(conn, &agent)?;
            channels::upsert(conn, &channel)?;
            outbox::enqueue(conn, &welcome)
        })
    }
}
