//! The budget of new gateway sessions: Discord revokes the token of an application that identifies too often.

use std::time::Duration;

use chorus_base::error::Result;
use jiff::Timestamp;

use crate::ops::Ops;

/// The limit on new gateway sessions within [`IDENTIFY_WINDOW`]; Discord's own is 1,000.
pub const MAX_IDENTIFIES: u32 = 50;
pub const IDENTIFY_WINDOW: Duration = Duration::from_secs(24 * 3600);

/// The state of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifyBudget {
    /// New sessions that are allowed now.
    pub left: u32,
    /// When the next one is allowed, if none is now.
    pub next_at: Option<Timestamp>,
    /// When the last session was begun.
    pub last_at: Option<Timestamp>,
}

/// Returns the state of the budget.
pub async fn read_budget(ops: &Ops) -> Result<IdentifyBudget> {
    let found = ops.store.catalog.discord.identifies.count_in_window(ops.clock.now(), IDENTIFY_WINDOW).await?;
    let left = MAX_IDENTIFIES.saturating_sub(found.count);
    let again = found.oldest.filter(|_| left == 0).and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok());
    Ok(IdentifyBudget { left, next_at: again, last_at: found.newest })
}

/// Spends one session from the budget durably. The inner `Err` is the time when the next one is allowed.
///
/// # Errors
/// A database that cannot be written. The caller must not begin a session then, because it would not be counted.
pub async fn spend(ops: &Ops) -> Result<Result<(), Timestamp>> {
    let now = ops.clock.now();
    let found = ops.store.catalog.discord.identifies.try_record(now, IDENTIFY_WINDOW, MAX_IDENTIFIES).await?;
    if found.recorded {
        return Ok(Ok(()));
    }
    Ok(Err(found.oldest.and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok()).unwrap_or(now)))
}
