//! `approvals.*`.

pub mod approve;
pub mod deny;
pub mod list;
