//! What the daemon tells in channels.

use crate::error::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::Announcements;

/// Keeps what is to be told, and that it was, in one commit.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`; nothing is kept then.
pub async fn enqueue(ops: &Ops, news: Announcements) -> Result<()> {
    ops.store.catalog.enqueue_announcements(news).await
}

/// The newest event that was told; `None`: none ever.
///
/// # Errors
/// A database that cannot be read.
pub async fn last_announced_event(ops: &Ops) -> Result<Option<u64>> {
    ops.store.catalog.last_announced_event().await
}

/// When channels last heard that the daemon has started, as it was noted.
///
/// # Errors
/// A database that cannot be read.
pub async fn last_announced_start(ops: &Ops) -> Result<Option<String>> {
    ops.store.catalog.last_announced_starts().await
}
