//! Claimed messages of channels.

use chorus_base::error::Result;
pub use chorus_store::catalog::discord::{ClaimOutcome, NewClaim, OpenClaim};

use crate::ops::Ops;
use crate::ops::discord::NewPost;

/// The limit on claims that wait for one agent.
pub const MAX_WAITING_CLAIMS: u32 = 100;

/// Claims a message and advances the read position of its channel. If too many claims of its agent wait already, the
/// message is dropped and `full` is posted, which reports that; it is posted once until there is room again.
pub async fn claim(ops: &Ops, new: NewClaim, full: NewPost) -> Result<ClaimOutcome> {
    ops.store.catalog.claim(new, MAX_WAITING_CLAIMS, full).await
}

/// Skips the messages of a channel up to this one for good, and posts `posts` about that.
pub async fn skip_messages(ops: &Ops, channel: u64, upto: u64, posts: Vec<NewPost>) -> Result<()> {
    ops.store.catalog.skip_messages(channel, upto, posts).await
}

/// Returns the claimed messages of a channel after `after`.
pub async fn claimed_after(ops: &Ops, channel: u64, after: u64) -> Result<Vec<u64>> {
    ops.store.catalog.claimed_after(channel, after).await
}

/// Returns claims that are not answered yet, oldest first.
pub async fn list_open(ops: &Ops) -> Result<Vec<OpenClaim>> {
    ops.store.catalog.open_claims().await
}

/// Records that the turn of a message has begun.
pub async fn mark_running(ops: &Ops, message: u64) -> Result<()> {
    ops.store.catalog.mark_claim_running(message).await
}

/// Changes the text of a claimed message whose turn has not begun. Returns false if it has begun, or the message is not
/// waiting.
pub async fn update_request(ops: &Ops, message: u64, asked: String) -> Result<bool> {
    ops.store.catalog.update_claim_request(message, asked).await
}

/// Closes the claim of a message that shall not be answered any more; returns false if it was closed before.
pub async fn drop_claim(ops: &Ops, message: u64) -> Result<bool> {
    ops.store.catalog.drop_claim(message).await
}

/// Closes the claim of a message and enqueues posts in one commit. Returns false, and posts nothing, if it was closed
/// before.
pub async fn finish_claim(ops: &Ops, message: u64, posts: Vec<NewPost>) -> Result<bool> {
    ops.store.catalog.finish_claim(message, posts).await
}
