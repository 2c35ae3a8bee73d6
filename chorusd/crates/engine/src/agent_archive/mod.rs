//! One agent as one file: a plain tar archive whose last member is a manifest with the size and SHA-256 of every other
//! member. A reader checks the whole archive before it uses any of it, and refuses whatever an export does not write.

mod manifest;
mod reader;
mod writer;

pub use manifest::{ExportedAgent, Manifest, Member, is_valid_member_path};
pub use reader::{Archive, ArchiveError};
pub use writer::ArchiveWriter;

/// Schema of the manifest and of the layout that it describes, of an archive without schedules.
pub const SCHEMA: u32 = 1;
/// The schema of an archive with schedules, which releases that have none cannot read.
pub const SCHEMA_WITH_SCHEDULES: u32 = 2;

/// The paths of the members. Any number of files may lie below `DOCS_PREFIX` and `SESSIONS_PREFIX`.
pub const MANIFEST_MEMBER: &str = "manifest.json";
pub const AGENT_MEMBER: &str = "agent.json";
pub const MEMORY_MEMBER: &str = "memory.jsonl";
pub const SCHEDULES_MEMBER: &str = "schedules.jsonl";
pub const WORKSPACE_MEMBER: &str = "workspace.bundle";
pub const DOCS_PREFIX: &str = "docs/";
pub const SESSIONS_PREFIX: &str = "sessions/";
