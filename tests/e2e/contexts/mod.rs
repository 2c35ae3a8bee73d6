//! The live context: appended to, shown, saved, cleared.

mod append;
mod clear;
pub mod idle;
mod idle_clock;
mod paging;
mod pins;
mod rewind;
mod save;
mod show;
mod summary;
