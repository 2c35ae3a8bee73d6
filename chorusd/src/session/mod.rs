//! Sessions on disk: their format, their names, what a person types to mean one, and what becomes one.

pub mod beside;
pub mod compact;
pub mod export;
pub mod file;
pub mod import;
pub mod markdown;
pub mod selector;
pub mod slug;
pub mod stream;
pub mod tree;

pub use file::{FormatError, MessageHash, SessionFile};
pub use selector::Selector;
