//! The live context: appended to, shown, saved, cleared.

mod append;
mod clear;
mod paging;
mod save;
mod show;
mod summary;
