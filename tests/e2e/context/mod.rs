//! The live context: appended to, shown, saved, cleared.

mod append;
mod clear;
mod compact;
mod history;
pub mod idle;
mod large;
mod paging;
mod pin;
mod restore;
pub mod resume;
mod rewind;
mod rewind_resumed;
mod save;
mod show;
mod summary;
pub mod window;
mod workspace_files;
