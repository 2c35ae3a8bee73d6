//! Backups of a whole home: a directory that holds each content once under its SHA-256 (`directory_sink`), or one tar
//! archive (`archive_sink`). Both end with a manifest that lists every file. `collector` reads the home; `verify` and
//! `restore` read a backup.
//!
//! A backup is replaced by writing its manifest. At that moment everything that the new manifest lists is on disk, and
//! nothing that the old one lists has changed, so an interrupted backup leaves the previous one intact. The databases
//! are checked before that, and a directory also retains the previous backup with its databases.

mod archive_sink;
mod collector;
mod directory_sink;
mod fsync;
mod generations;
mod home_identity;
mod manifest;
mod reader;
mod restore;
mod sink;
mod verify;
mod walk;

pub use archive_sink::ArchiveSink;
pub use collector::{ChangedFiles, Collector, OnProgress};
pub use directory_sink::DirectorySink;
pub use home_identity::{HomeIdentity, home_id};
pub use manifest::Manifest;
pub use restore::restore;
pub use sink::BackupSink;
pub use verify::verify;

/// Name of the manifest in a backup.
pub const MANIFEST_FILE: &str = "manifest.jsonl";

/// Name of the manifest of the previous backup, in a directory.
pub const PREVIOUS_MANIFEST_FILE: &str = "manifest.previous.jsonl";

/// Schema of the manifest and of the layout that it describes.
pub const SCHEMA: u32 = 1;

/// Folder of an archive that holds the files of the home.
const HOME_FOLDER: &str = "home";

/// Bytes per read.
const READ_BUFFER_BYTES: usize = 256 << 10;
