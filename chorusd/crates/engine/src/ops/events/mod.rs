//! The operations `events.*`.

pub mod list;
pub mod subscribe;

/// The default number of events in a page.
const DEFAULT_PAGE: u64 = 1_000;
