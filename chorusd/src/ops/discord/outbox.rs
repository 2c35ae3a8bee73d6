//! What is to be posted, kept.

use jiff::Timestamp;

use crate::error::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::outbox::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost};

/// Keeps posts, all or none; the order is that of their sending.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`, as of all of these.
pub async fn enqueue(ops: &Ops, posts: Vec<NewPost>) -> Result<()> {
    ops.store.catalog.enqueue_posts(posts).await
}

/// Has what is about `about` look like `body`; the channel that it is in, or `None`: there is nothing about it.
///
/// # Errors
/// As [`put`].
pub async fn edit_post(ops: &Ops, about: String, body: String, nonce: String) -> Result<Option<u64>> {
    ops.store.catalog.edit_post(about, body, nonce).await
}

/// What is about `about` will not be changed any more; what waits is still posted.
///
/// # Errors
/// As [`put`].
pub async fn finalize_post(ops: &Ops, about: String) -> Result<()> {
    ops.store.catalog.finalize_post(about).await
}

/// What there are posts about, of those that begin with `prefix`.
///
/// # Errors
/// As [`put`].
pub async fn subjects_with_prefix(ops: &Ops, prefix: String) -> Result<Vec<String>> {
    ops.store.catalog.posts_about(prefix).await
}

/// Channels that something is to be posted in.
///
/// # Errors
/// As [`put`].
pub async fn channels_with_posts(ops: &Ops) -> Result<Vec<u64>> {
    ops.store.catalog.channels_with_queued_posts().await
}

/// The next post of a channel, which counts as on its way from now on.
///
/// # Errors
/// As [`put`].
pub async fn begin_next(ops: &Ops, channel: u64, now: Timestamp) -> Result<Option<DuePost>> {
    ops.store.catalog.begin_next_post(channel, now).await
}

/// It has certainly not arrived.
///
/// # Errors
/// As [`put`].
pub async fn mark_unsent(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.mark_post_unsent(id).await
}

/// A post is there, as this message.
///
/// # Errors
/// As [`put`].
pub async fn mark_sent(ops: &Ops, id: i64, message: u64) -> Result<()> {
    ops.store.catalog.mark_post_sent(id, message).await
}

/// A post will never be there.
///
/// # Errors
/// As [`put`].
pub async fn abandon(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.abandon_post(id).await
}

/// Nothing will be posted in a channel any more; says how much waited.
///
/// # Errors
/// As [`put`].
pub async fn abandon_channel(ops: &Ops, channel: u64) -> Result<u64> {
    ops.store.catalog.abandon_channel(channel).await
}

/// Tells how many notices were dropped because they were too old.
///
/// # Errors
/// A database that cannot be read.
pub async fn dropped_notices(ops: &Ops) -> Result<DroppedNotices> {
    ops.store.catalog.dropped_notices().await
}
