//! Announcements that the daemon posts to channels, each once: the number of the last announced event is stored with
//! the posts.

use std::fmt::Debug;

use jiff::Timestamp;

use super::NewPost;
use crate::{CatalogRead, CatalogWrite};

/// Announcements to be posted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcements {
    pub posts: Vec<NewPost>,
    /// The newest event that the posts are about; `None` leaves the stored number unchanged.
    pub upto: Option<u64>,
    /// New value of [`AnnouncementLog::last_starts`]; `None` leaves it unchanged.
    pub starts: Option<String>,
    /// Number of notices that were too old to be announced, and the time at which that was found.
    pub dropped: Option<(u64, Timestamp)>,
}

/// The record of what was announced.
pub trait AnnouncementLog: Debug + Send + Sync {
    /// Queues the posts and records that the events were announced, in one commit.
    fn enqueue(&self, announcements: Announcements) -> CatalogWrite<()>;

    /// Returns the number of the newest announced event; `None` if there never was one.
    fn last_event(&self) -> CatalogRead<'_, Option<u64>>;

    /// Returns when channels were last told that the daemon has started, as JSON.
    fn last_starts(&self) -> CatalogRead<'_, Option<String>>;
}
