//! How often Chorus makes itself known to Discord anew: Discord takes a token away that does so too often.

use std::time::Duration;

use jiff::Timestamp;

use crate::failure::Result;
use crate::ops::Ops;

/// New connections within [`WINDOW`]; Discord takes 1,000.
pub const MOST: u32 = 50;
pub const WINDOW: Duration = Duration::from_secs(24 * 3600);

/// How far the budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// New connections that there may be now.
    pub left: u32,
    /// When there may be one more, where there may be none now.
    pub again: Option<Timestamp>,
    /// The last one.
    pub newest: Option<Timestamp>,
}

/// How far it is used up.
///
/// # Errors
/// A database that cannot be read.
pub async fn budget(ops: &Ops) -> Result<Budget> {
    let found = ops.store.catalog.discord_identifies(ops.clock.now(), WINDOW).await?;
    let left = MOST.saturating_sub(found.count);
    let again = found.oldest.filter(|_| left == 0).and_then(|oldest| oldest.checked_add(WINDOW).ok());
    Ok(Budget { left, again, newest: found.newest })
}

/// Takes one, durably; `Err` in the result: when there is one again.
///
/// # Errors
/// A database that cannot be written: then there must be no new connection, for nobody would count it.
pub async fn take(ops: &Ops) -> Result<Result<(), Timestamp>> {
    let now = ops.clock.now();
    let found = ops.store.catalog.take_discord_identify(now, WINDOW, MOST).await?;
    if found.taken {
        return Ok(Ok(()));
    }
    Ok(Err(found.oldest.and_then(|oldest| oldest.checked_add(WINDOW).ok()).unwrap_or(now)))
}
