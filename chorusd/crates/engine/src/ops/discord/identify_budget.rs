//! The budget of new gateway sessions: Discord revokes the token of an application that identifies too often.

use std::time::Duration;

use chorus_base::error::Result;
use jiff::Timestamp;

use crate::ops::Ops;

/// The limit on new gateway sessions of each shard within [`IDENTIFY_WINDOW`].
const MAX_IDENTIFIES: u32 = 50;
/// The limit for all shards together; Discord's own is 1,000, and more for bots in many servers.
const MAX_ALL_IDENTIFIES: u32 = 900;
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

/// Returns how many new sessions are allowed within [`IDENTIFY_WINDOW`].
#[must_use]
pub fn max_identifies(ops: &Ops) -> u32 {
    (MAX_IDENTIFIES * ops.discord.shard_count()).min(MAX_ALL_IDENTIFIES)
}

/// Returns the state of the budget.
pub async fn read_budget(ops: &Ops) -> Result<IdentifyBudget> {
    let found = ops.store.catalog.discord.identifies.count_in_window(ops.clock.now(), IDENTIFY_WINDOW).await?;
    let left = max_identifies(ops).saturating_sub(found.count);
    let again = found.oldest.filter(|_| left == 0).and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok());
    Ok(IdentifyBudget { left, next_at: again, last_at: found.newest })
}

/// Spends one session from the budget durably. The inner `Err` is the time when the next one is allowed.
///
/// # Errors
/// A database that cannot be written. The caller must not begin a session then, because it would not be counted.
pub async fn spend(ops: &Ops) -> Result<Result<(), Timestamp>> {
    let now = ops.clock.now();
    let found = ops.store.catalog.discord.identifies.try_record(now, IDENTIFY_WINDOW, max_identifies(ops)).await?;
    if found.recorded {
        return Ok(Ok(()));
    }
    Ok(Err(found.oldest.and_then(|oldest| oldest.checked_add(IDENTIFY_WINDOW).ok()).unwrap_or(now)))
}
