//! Identifies of the gateway within the rate limit's window, one row each.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;

use crate::{CatalogRead, CatalogWrite};

/// Identifies within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifyWindow {
    pub count: u32,
    pub oldest: Option<Timestamp>,
    pub newest: Option<Timestamp>,
    /// True if a new identify was recorded and is included.
    pub recorded: bool,
}

/// The table of identifies. Those from the future count as made now, so that a clock that was set back does not make them
/// count longer.
pub trait IdentifyTable: Debug + Send + Sync {
    /// Returns the identifies of the last `window`.
    fn count_in_window(&self, now: Timestamp, window: Duration) -> CatalogRead<'_, IdentifyWindow>;

    /// Records an identify at `now`, unless there were `most` within `window`.
    fn try_record(&self, now: Timestamp, window: Duration, most: u32) -> CatalogWrite<IdentifyWindow>;
}
