//! What is to be posted, kept.

use jiff::Timestamp;

use crate::failure::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::outbox::{Dropped, Due, NEWS, NewPost};

/// Keeps posts, all or none; the order is that of their sending.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`, as of all of these.
pub async fn put(ops: &Ops, posts: Vec<NewPost>) -> Result<()> {
    ops.store.catalog.put_posts(posts).await
}

/// Has what is about `about` look like `body`; the channel that it is in, or `None`: there is nothing about it.
///
/// # Errors
/// As [`put`].
pub async fn change(ops: &Ops, about: String, body: String, nonce: String) -> Result<Option<u64>> {
    ops.store.catalog.change_post(about, body, nonce).await
}

/// What is about `about` will not be changed any more; what waits is still posted.
///
/// # Errors
/// As [`put`].
pub async fn forget(ops: &Ops, about: String) -> Result<()> {
    ops.store.catalog.forget_post(about).await
}

/// What there are posts about, of those that begin with `prefix`.
///
/// # Errors
/// As [`put`].
pub async fn about(ops: &Ops, prefix: String) -> Result<Vec<String>> {
    ops.store.catalog.posts_about(prefix).await
}

/// Channels that something is to be posted in.
///
/// # Errors
/// As [`put`].
pub async fn channels(ops: &Ops) -> Result<Vec<u64>> {
    ops.store.catalog.channels_to_post_in().await
}

/// The next post of a channel, which counts as on its way from now on.
///
/// # Errors
/// As [`put`].
pub async fn take(ops: &Ops, channel: u64, now: Timestamp) -> Result<Option<Due>> {
    ops.store.catalog.take_post(channel, now).await
}

/// It has certainly not arrived.
///
/// # Errors
/// As [`put`].
pub async fn untake(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.untake_post(id).await
}

/// A post is there, as this message.
///
/// # Errors
/// As [`put`].
pub async fn posted(ops: &Ops, id: i64, message: u64) -> Result<()> {
    ops.store.catalog.posted(id, message).await
}

/// A post will never be there.
///
/// # Errors
/// As [`put`].
pub async fn give_up(ops: &Ops, id: i64) -> Result<()> {
    ops.store.catalog.give_up_post(id).await
}

/// Nothing will be posted in a channel any more; says how much waited.
///
/// # Errors
/// As [`put`].
pub async fn give_up_channel(ops: &Ops, channel: u64) -> Result<u64> {
    ops.store.catalog.give_up_channel(channel).await
}

/// Tells how many notices were dropped because they were too old.
///
/// # Errors
/// A database that cannot be read.
pub async fn notices_dropped(ops: &Ops) -> Result<Dropped> {
    ops.store.catalog.notices_dropped().await
}
