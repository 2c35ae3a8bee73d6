//! Sessions on disk: their format, their names, what a person types to mean one, and what becomes one.

pub mod content_eq;
pub mod export;
pub mod file;
mod hash;
pub mod import;
pub mod index;
pub mod json_minify;
pub mod markdown;
pub mod parallel;
pub mod selector;
pub mod slug;
pub mod tree;

pub use file::{FormatError, SessionFile};
pub use hash::MessageHash;
pub use index::SessionIndex;
pub use selector::Selector;
