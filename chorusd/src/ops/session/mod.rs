//! `session.*`.

pub mod export;
pub mod get;
pub mod import;
