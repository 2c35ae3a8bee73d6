//! Announcements that the daemon posts to channels, each once: the number of the last announced event is stored with
//! the posts.

use chorus_base::error::Result;
use jiff::Timestamp;

use super::outbox::{self, NewPost};
use crate::catalog::{SettingTable, settings};

/// Setting with the number of the newest event that was announced, or did not need to be.
const LAST_EVENT_KEY: &str = "discord.events";

/// Setting with the times at which channels were last told that the daemon has started, as JSON.
const LAST_STARTS_KEY: &str = "discord.starts";

/// Announcements to be posted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcements {
    pub posts: Vec<NewPost>,
    /// The newest event that the posts are about; `None` leaves the stored number unchanged.
    pub upto: Option<u64>,
    /// New value of the starts setting; `None` leaves it unchanged.
    pub starts: Option<String>,
    /// Number of notices that were too old to be announced, and the time at which that was found.
    pub dropped: Option<(u64, Timestamp)>,
}

/// The record of what was announced, which is kept with the settings.
#[derive(Debug, Clone)]
pub struct AnnouncementLog {
    pub(in crate::catalog) settings: SettingTable,
}

impl AnnouncementLog {
    /// Queues the posts and records that the events were announced, in one commit.
    pub fn enqueue(&self, announcements: Announcements) -> impl Future<Output = Result<()>> + Send + use<> {
        self.settings.db.writer.submit(move |conn| {
            announcements.posts.iter().try_for_each(|post| outbox::enqueue(conn, post))?;
            if let Some((count, now)) = announcements.dropped {
                outbox::add_dropped(conn, count, now)?;
            }
            if let Some(upto) = announcements.upto {
                settings::upsert(conn, LAST_EVENT_KEY, Some(&upto.to_string()))?;
            }
            match &announcements.starts {
                Some(starts) => settings::upsert(conn, LAST_STARTS_KEY, Some(starts)),
                None => Ok(()),
            }
        })
    }

    /// Returns the number of the newest announced event; `None` if there never was one.
    pub async fn last_event(&self) -> Result<Option<u64>> {
        Ok(self.settings.get(LAST_EVENT_KEY).await?.and_then(|seq| seq.parse().ok()))
    }

    /// Returns when channels were last told that the daemon has started, as JSON.
    pub async fn last_starts(&self) -> Result<Option<String>> {
        self.settings.get(LAST_STARTS_KEY).await
    }
}
