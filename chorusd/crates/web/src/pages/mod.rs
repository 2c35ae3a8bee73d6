//! The pages, one module each.

pub(crate) mod agent;
pub(crate) mod approvals;
pub(crate) mod home;
pub(crate) mod live;
mod messages;
pub(crate) mod open;
mod rows;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod tree;
pub(crate) mod usage;
