//! `session.*`.

pub mod get;
pub mod import;
