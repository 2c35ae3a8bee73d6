//! The outbox: posts to Discord that are stored until they are delivered, in order within each channel.

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};

use crate::{CatalogRead, CatalogWrite};

/// Notices about events that are older than this are dropped.
pub const MAX_NOTICE_AGE: SignedDuration = SignedDuration::from_hours(24);

/// A post to be queued.
///
/// If a queued post has the same `about` key, the new one changes it, and else queues a change of its message: its body is a
/// JSON merge patch then.
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

/// Notices that were dropped because they were too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedNotices {
    pub count: u64,
    /// When the last one was dropped.
    pub last: Option<Timestamp>,
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

/// The table of posts. A delivered one stays only as long as it has a key, or a change of it is queued.
pub trait OutboxTable: Debug + Send + Sync {
    /// Queues posts after all others, all or none.
    fn enqueue(&self, posts: Vec<NewPost>) -> CatalogWrite<()>;

    /// Changes the post with the key `about` by `body`, a JSON merge patch; returns its channel, or `None` if there is no
    /// such post. A post that was never attempted is changed itself. Else its message is changed by a queued change, which
    /// later changes are merged into until it is attempted.
    fn edit(&self, about: String, body: String, nonce: String) -> CatalogWrite<Option<u64>>;

    /// Removes the key `about` from its post, which cannot be changed any more; queued posts are still sent.
    fn finalize(&self, about: String) -> CatalogWrite<()>;

    /// Lists the keys of posts that begin with `prefix`, in the order of the posts.
    fn list_keys(&self, prefix: String) -> CatalogRead<'_, Vec<String>>;

    /// Lists the channels with queued posts.
    fn list_channels(&self) -> CatalogRead<'_, Vec<u64>>;

    /// Returns the next post of a channel and records the attempt to send it. Drops and counts notices that are older than
    /// [`MAX_NOTICE_AGE`] and were never attempted.
    fn begin_next(&self, channel: u64, now: Timestamp) -> CatalogWrite<Option<DuePost>>;

    /// Records that a post has certainly not arrived, so that changes apply to its row until the next attempt.
    fn mark_unsent(&self, id: i64) -> CatalogWrite<()>;

    /// Records that a post was delivered as `message`; deletes a delivered change. If a change had to be posted as a new
    /// message, that message replaces the changed one.
    fn mark_sent(&self, id: i64, message: u64) -> CatalogWrite<()>;

    /// Returns how many notices were dropped because they were too old.
    fn dropped_notices(&self) -> CatalogRead<'_, DroppedNotices>;

    /// Deletes a post that can never be delivered.
    fn abandon(&self, id: i64) -> CatalogWrite<()>;

    /// Deletes all posts of a channel; returns how many were queued.
    fn abandon_channel(&self, channel: u64) -> CatalogWrite<u64>;
}
