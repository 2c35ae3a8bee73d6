//! What the daemon tells in channels.

use crate::failure::Result;
use crate::ops::Ops;
pub use crate::store::catalog::discord::News;

/// Keeps what is to be told, and that it was, in one commit.
///
/// # Errors
/// `busy`, `disk_full`, `storage_failed`; nothing is kept then.
pub async fn tell(ops: &Ops, news: News) -> Result<()> {
    ops.store.catalog.tell_news(news).await
}

/// The newest event that was told; `None`: none ever.
///
/// # Errors
/// A database that cannot be read.
pub async fn told(ops: &Ops) -> Result<Option<u64>> {
    ops.store.catalog.news_told().await
}

/// When channels last heard that the daemon has started, as it was noted.
///
/// # Errors
/// A database that cannot be read.
pub async fn starts(ops: &Ops) -> Result<Option<String>> {
    ops.store.catalog.starts_told().await
}
