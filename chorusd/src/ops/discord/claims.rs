//! Messages of channels that were taken up.

use crate::error::Result;
use crate::ops::Ops;
use crate::ops::discord::NewPost;
pub use crate::store::catalog::discord::{ClaimOutcome, NewClaim, OpenClaim};

/// As many may wait for one agent.
pub const MAX_WAITING_CLAIMS: u32 = 100;

/// Takes a message up, and notes that its channel was read so far where it was. Where too many of its agent wait already it is dropped,
/// and `full` is posted, once until there is room again: `full` is about that.
///
/// # Errors
/// A database that cannot be written.
pub async fn claim(ops: &Ops, new: NewClaim, full: NewPost) -> Result<ClaimOutcome> {
    ops.store.catalog.claim(new, MAX_WAITING_CLAIMS, full).await
}

/// Passes over the messages of a channel up to this one, for good, and posts what there is to say of that.
///
/// # Errors
/// A database that cannot be written.
pub async fn skip_messages(ops: &Ops, channel: u64, upto: u64, posts: Vec<NewPost>) -> Result<()> {
    ops.store.catalog.skip_messages(channel, upto, posts).await
}

/// Messages of a channel that were taken up, of those after `after`.
///
/// # Errors
/// A database that cannot be read.
pub async fn claimed_after(ops: &Ops, channel: u64, after: u64) -> Result<Vec<u64>> {
    ops.store.catalog.claimed_after(channel, after).await
}

/// Messages that are not answered yet, the oldest first.
///
/// # Errors
/// A database that cannot be read.
pub async fn list_open(ops: &Ops) -> Result<Vec<OpenClaim>> {
    ops.store.catalog.open_claims().await
}

/// Notes that the turn of a message has begun.
///
/// # Errors
/// A database that cannot be written.
pub async fn mark_running(ops: &Ops, message: u64) -> Result<()> {
    ops.store.catalog.mark_claim_running(message).await
}

/// Changes what is asked by a message whose turn has not begun; false: it has, or the message does not wait.
///
/// # Errors
/// A database that cannot be written.
pub async fn update_request(ops: &Ops, message: u64, asked: String) -> Result<bool> {
    ops.store.catalog.update_claim_request(message, asked).await
}

/// Is done with a message that is not to be answered any more; false: it was done with before.
///
/// # Errors
/// A database that cannot be written.
pub async fn drop_claim(ops: &Ops, message: u64) -> Result<bool> {
    ops.store.catalog.drop_claim(message).await
}

/// Is done with a message, and posts what is to be said, in one commit; false: it was done with before, and nothing is posted.
///
/// # Errors
/// A database that cannot be written.
pub async fn finish_claim(ops: &Ops, message: u64, posts: Vec<NewPost>) -> Result<bool> {
    ops.store.catalog.finish_claim(message, posts).await
}
