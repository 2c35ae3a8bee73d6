//! Sessions on disk: their format, their names, and what a person types to mean one.

pub mod compact;
pub mod file;
pub mod selector;
pub mod slug;

pub use file::{FormatError, MessageHash, SessionFile};
pub use selector::Selector;
