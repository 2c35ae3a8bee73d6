//! Sessions on disk: their format, their names, what a person types to mean one, and what becomes one.

pub mod beside;
pub mod compact;
pub mod export;
pub mod file;
mod hash;
pub mod import;
pub mod index;
pub mod markdown;
pub mod same;
pub mod selector;
pub mod slug;
pub mod tree;

pub use file::{FormatError, SessionFile};
pub use hash::MessageHash;
pub use index::Index;
pub use selector::Selector;
