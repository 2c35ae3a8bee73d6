//! The outbox: posts that are stored until Discord has accepted them.

use chorus_base::error::Result;
pub use chorus_store::catalog::discord::outbox::{DroppedNotices, DuePost, MAX_NOTICE_AGE, NewPost};
use jiff::Timestamp;

use crate::ops::Ops;

/// Enqueues posts, all or none; they are sent in this order.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`, as for the other functions here.
pub async fn enqueue(ops: &Ops, posts: Vec<NewPost>) -> Result<()> {
    ops.store.catalog.enqueue_posts(posts).await
}

/// Replaces the body of the post about the subject `about`. Returns its channel, or `None` if there is no such post.
pub async fn edit_post(ops: &Ops, about: String, body: String, nonce: String) -> Result<Option<u64>> {
    ops.store.catalog.edit_post(about, body, nonce).await
}

/// Declares that the post about this subject will not be edited any more. If it is still queued, it is posted.
pub async fn finalize_post(ops: &Ops, about: String) -> Result<()> {
    ops.store.catalog.finalize_post(about).await
}

/// Returns the subjects of posts that begin with `prefix`.
pub async fn subjects_with_prefix(ops: &Ops, prefix: String) -> Result<Vec<String>> {
    ops.store.catalog.posts_about(prefix).await
}

/// Returns the channels that have queued posts.
pub async fn channels_with_posts(ops: &Ops) -> Result<Vec<u64>> {
    ops.store.catalog.channels_with_queued_posts().await
}

/// Takes the next post of a channel, which counts as being sent from now on.
pub async fn begin_next(ops: &Ops, channel: u64, now: Timestamp) -> Result<Option<DuePost>> {
    ops.store.catalog.begin_next_post(channel, now).await
}

/// Returns a post to the queue that was certainly not sent.
pub async fn mark_unsent(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.mark_post_unsent(id).await
}

/// Records that a post was sent as this message.
pub async fn mark_sent(ops: &Ops, id: i64, message: u64) -> Result<()> {
    ops.store.catalog.mark_post_sent(id, message).await
}

/// Drops a post that can never be sent.
pub async fn abandon(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.abandon_post(id).await
}

/// Drops all posts of a channel; returns how many were queued.
pub async fn abandon_channel(ops: &Ops, channel: u64) -> Result<u64> {
    ops.store.catalog.abandon_channel(channel).await
}

/// Returns how many notices were dropped because they were too old.
pub async fn dropped_notices(ops: &Ops) -> Result<DroppedNotices> {
    ops.store.catalog.dropped_notices().await
}
