//! `session.*`.

pub mod delete;
pub mod export;
pub mod get;
pub mod import;
pub mod purge;
pub mod tag;
pub mod untag;
