//! How often Chorus makes itself known to Discord anew: Discord takes a token away that does so too often.

use std::time::Duration;

use jiff::Timestamp;

use crate::error::Result;
use crate::ops::Ops;

/// New connections within [`WINDOW`]; Discord takes 1,000.
pub const MAX_IDENTIFIES: u32 = 50;
pub const IDENTIFY_WINDOW: Duration = Duration::from_secs(24 * 3600);

/// How far the budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifyBudget {
    /// New connections that there may be now.
    pub left: u32,
    /// When there may be one more, where there may be none now.
    pub next_at: Option<Timestamp>,
    /// The last one.
    pub last_at: Option<Timestamp>,
}

/// How far it is used up.
///
/// # Errors
/// A database that cannot be read.
pub async fn read_budget(ops: &Ops) -> Result<IdentifyBudget> {
    let found = ops.store.catalog.identifies_in_window(ops.clock.now(), IDENTIFY_WINDOW).await?;
    let left = MAX_IDENTIFIES.saturating_sub(found.count);
    let again = found.oldest.filter(|_| left == 0).and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok());
    Ok(IdentifyBudget { left, next_at: again, last_at: found.newest })
}

/// Takes one, durably; `Err` in the result: when there is one again.
///
/// # Errors
/// A database that cannot be written: then there must be no new connection, for nobody would count it.
pub async fn spend(ops: &Ops) -> Result<Result<(), Timestamp>> {
    let now = ops.clock.now();
    let found = ops.store.catalog.try_record_identify(now, IDENTIFY_WINDOW, MAX_IDENTIFIES).await?;
    if found.recorded {
        return Ok(Ok(()));
    }
    Ok(Err(found.oldest.and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok()).unwrap_or(now)))
}
