//! How durable commits are.

use std::time::Duration;

/// When a commit is guaranteed to be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the commit is acknowledged.
    Always,
    /// At the end of each interval; a power failure may lose the commits since the last one.
    Interval(Duration),
}
