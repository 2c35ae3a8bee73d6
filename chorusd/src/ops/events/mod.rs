//! `events.*`.

pub mod list;
pub mod subscribe;

/// Events a page unless said otherwise.
const DEFAULT_PAGE: u64 = 1_000;
