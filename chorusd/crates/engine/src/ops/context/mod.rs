//! The operations `context.*`.

pub mod append;
mod carried_set;
pub mod clear;
pub mod compact;
mod continuation_source;
mod continuation_starter;
pub mod history;
pub mod pin;
pub mod restore;
pub mod resume;
pub mod rewind;
pub mod save;
pub mod session_prefix;
pub mod show;
mod show_window;
pub mod unpin;

pub use continuation_starter::ContinuationStarter;
