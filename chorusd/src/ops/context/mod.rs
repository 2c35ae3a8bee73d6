//! `context.*`.

pub mod append;
pub mod clear;
pub mod history;
pub mod pin;
pub mod restore;
pub mod rewind;
pub mod save;
pub mod show;
pub mod unpin;

use crate::failure::Failure;

/// The actor answered something else than what was asked.
pub(super) fn wrong_reply() -> Failure {
    Failure::internal("an agent gave the answer to another question")
}
