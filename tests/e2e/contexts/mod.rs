//! The live context: appended to, shown, saved, cleared.

mod append;
mod clear;
mod compact;
pub mod idle;
mod idle_clock;
mod large;
mod paging;
mod pins;
mod resume;
mod rewind;
mod save;
mod show;
mod summary;
