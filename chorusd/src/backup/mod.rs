//! Backups of a whole home: a directory that keeps each content once under its SHA-256 (`directory`), or one tar archive
//! (`archive`). Both end with a manifest that lists every file. `collect` reads the home, `verify` and `restore` read a backup.
//!
//! A backup is replaced by writing its manifest: everything that the new manifest lists is on the disk by then, and nothing that
//! the old one lists was changed. So an interrupted backup leaves the previous one as it was. Databases are checked before that, and
//! a directory keeps the backup before as well, with its databases.

mod archive;
mod collect;
mod directory;
mod generations;
mod identity;
mod manifest;
mod read;
mod restore;
mod sink;
mod sync;
mod verify;
mod walk;

pub use archive::Archive;
pub use collect::{Collector, Late, OnProgress};
pub use directory::Directory;
pub use identity::Identity;
pub use manifest::Manifest;
pub use restore::restore;
pub use sink::Sink;
pub use verify::verify;

/// Name of the manifest in a backup.
pub const MANIFEST: &str = "manifest.jsonl";

/// Name of the manifest of the backup before, in a directory.
pub const PREVIOUS: &str = "manifest.previous.jsonl";

/// Schema of the manifest and of the layout that it describes.
pub const SCHEMA: u32 = 1;

/// Folder of an archive that holds the files of the home.
const HOME: &str = "home";

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
