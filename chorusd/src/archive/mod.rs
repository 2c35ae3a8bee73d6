//! A whole agent as one file: a plain tar archive, whose last member is a manifest that names every other with size and hash. It is read
//! once before anything of it is used; what is not as it is written here is refused.

mod manifest;
mod read;
mod write;

pub use manifest::{Manifest, Member, Origin, has_place};
pub use read::{Archive, BadArchive};
pub use write::Writer;

/// Of the manifest, and of the layout that it describes.
pub const SCHEMA: u32 = 1;

/// The members there are; below `DOCS` and `SESSIONS` there may be any number.
pub const MANIFEST: &str = "manifest.json";
pub const AGENT: &str = "agent.json";
pub const MEMORY: &str = "memory.jsonl";
pub const WORKSPACE: &str = "workspace.bundle";
pub const DOCS: &str = "docs/";
pub const SESSIONS: &str = "sessions/";
