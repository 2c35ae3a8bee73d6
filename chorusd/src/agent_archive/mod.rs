//! A whole agent as one file: a plain tar archive, whose last member is a manifest that names every other with size and hash. It is read
//! once before anything of it is used; what is not as it is written here is refused.

mod manifest;
mod reader;
mod writer;

pub use manifest::{ExportedAgent, Manifest, Member, is_valid_member_path};
pub use reader::{Archive, ArchiveError};
pub use writer::ArchiveWriter;

/// Of the manifest, and of the layout that it describes.
pub const SCHEMA: u32 = 1;

/// The members there are; below `DOCS` and `SESSIONS` there may be any number.
pub const MANIFEST_MEMBER: &str = "manifest.json";
pub const AGENT_MEMBER: &str = "agent.json";
pub const MEMORY_MEMBER: &str = "memory.jsonl";
pub const WORKSPACE_MEMBER: &str = "workspace.bundle";
pub const DOCS_PREFIX: &str = "docs/";
pub const SESSIONS_PREFIX: &str = "sessions/";
