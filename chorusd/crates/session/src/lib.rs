//! Saved sessions: their file format, message index, names and selectors, and their import, export and lineage tree.

pub mod content_eq;
pub mod export;
pub mod file;
mod hash;
pub mod import;
pub mod index;
pub mod markdown;
pub mod message;
pub mod selector;
pub mod slug;
pub mod summary;
pub mod text_attachments;
pub mod token_estimate;
pub mod tree;

pub use file::{FormatError, SessionFile};
pub use hash::MessageHash;
pub use index::SessionIndex;
pub use selector::Selector;
