//! The operations `session.*`.

pub mod branch;
pub mod delete;
pub mod diff;
pub mod expire;
pub mod export;
pub mod export_offsets;
pub mod get;
pub mod import;
pub mod merge;
pub mod purge;
mod reader;
mod session_trash;
pub mod tag;
pub mod tree;
pub mod untag;

pub use import::SessionImporter;
pub use reader::SessionReader;
pub use session_trash::SessionTrash;
