//! `context.*`.

pub mod append;
pub mod clear;
pub mod compact;
pub mod history;
mod parent;
pub mod pin;
pub mod restore;
pub mod resume;
pub mod rewind;
pub mod save;
pub mod show;
pub mod taken;
pub mod unpin;
mod window;

use crate::failure::Failure;

/// The actor answered something else than what was asked.
pub(super) fn wrong_reply() -> Failure {
    Failure::internal("an agent gave the answer to another question")
}
