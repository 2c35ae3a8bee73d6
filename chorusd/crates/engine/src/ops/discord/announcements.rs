//! Announcements of the daemon in channels.

use chorus_base::error::Result;
pub use chorus_store::catalog::discord::Announcements;

use crate::ops::Ops;

/// Enqueues announcements and records that in one commit.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`; nothing is stored then.
pub async fn enqueue(ops: &Ops, news: Announcements) -> Result<()> {
    ops.store.catalog.enqueue_announcements(news).await
}

/// Returns the newest event that was announced; `None` if there was none.
pub async fn last_announced_event(ops: &Ops) -> Result<Option<u64>> {
    ops.store.catalog.last_announced_event().await
}

/// Returns the record of the last announced start.
pub async fn last_announced_start(ops: &Ops) -> Result<Option<String>> {
    ops.store.catalog.last_announced_starts().await
}
