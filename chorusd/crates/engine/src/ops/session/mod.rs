//! The operations `session.*`.

pub mod branch;
pub mod compression;
mod daily;
pub mod delete;
pub mod diff;
pub mod expire;
pub mod export;
pub mod export_offsets;
pub mod get;
pub mod import;
pub mod merge;
mod message_source;
mod missing_session;
mod open_session;
pub mod purge;
mod reader;
pub mod scrub;
mod session_trash;
pub mod tag;
pub mod tree;
pub mod untag;

pub use import::SessionImporter;
pub use open_session::OpenSession;
pub use reader::SessionReader;
pub use session_trash::SessionTrash;
