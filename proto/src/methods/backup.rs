//! `backup.*`: copies the whole home while the daemon runs. Verifying and restoring need no daemon: `chorusd
//! --verify-backup` and `--restore-backup` print [`Verified`] and [`Restored`].

use jiff::Timestamp;

use super::{method, wire};

method!(
    /// Backs the home up into a directory.
    Create = "backup.create", CreateParams => Summary
);
method!(
    /// Starts a backup that is sent to the client as one tar archive.
    ArchiveBegin = "backup.archive.begin", ArchiveBeginParams => ArchiveBeginResult
);
method!(
    /// Returns the next bytes of the archive.
    ArchiveRead = "backup.archive.read", ArchiveReadParams => ArchiveReadResult
);

#[wire(params)]
pub struct CreateParams {
    /// The directory, as an absolute path: new, empty, or with an earlier backup.
    pub dir: String,
    /// Delete copies of files that are in neither the new nor the previous backup.
    #[serde(default)]
    pub prune: bool,
}

/// End of the warnings about sockets, pipes and devices, which a backup cannot contain.
pub const SPECIAL_FILE_WARNING: &str = "is a socket, pipe or device and not in the backup";

/// A completed backup.
#[wire(PartialEq, Eq)]
pub struct Summary {
    /// Agents in the backup.
    pub agents: u64,
    /// Saved sessions in the backup.
    pub sessions: u64,
    /// Files in the backup, the databases included.
    pub files: u64,
    /// Size of those files in bytes.
    pub bytes: u64,
    /// Files that had to be copied; the directory already had the others.
    pub copied_files: u64,
    pub copied_bytes: u64,
    /// Copies that were deleted because the backup does not contain them.
    pub pruned_files: u64,
    /// Files of the home that could not be read and are not in the backup.
    pub unreadable: Vec<Unreadable>,
    /// Files in the backup that contain keys, relative to the home.
    pub keys: Vec<String>,
    /// Other warnings for people.
    pub warnings: Vec<String>,
    pub duration_ms: u64,
}

#[wire(PartialEq, Eq)]
pub struct Unreadable {
    /// Relative to the home.
    pub path: String,
    pub reason: String,
}

#[wire(params)]
pub struct ArchiveBeginParams {}

#[wire(PartialEq, Eq)]
pub struct ArchiveBeginResult {
    /// Identifies the archive in `read`. It ends with the connection.
    pub archive: u64,
}

#[wire(params)]
pub struct ArchiveReadParams {
    pub archive: u64,
}

#[wire(PartialEq, Eq)]
pub struct ArchiveReadResult {
    /// The bytes after those of the previous result.
    pub data_base64: String,
    /// Present in the last result: the archive is complete.
    #[omit_empty]
    pub summary: Option<Summary>,
}

/// The findings of `backup verify`. It is not on the wire; `chorusctl --json` prints it.
#[wire(PartialEq, Eq)]
pub struct Verified {
    /// True if the backup is complete and unchanged.
    pub ok: bool,
    pub created_at: Timestamp,
    pub agents: u64,
    pub sessions: u64,
    pub files: u64,
    pub bytes: u64,
    /// Files that are damaged or missing, each with what is wrong.
    pub problems: Vec<String>,
    /// Damage that was in the home already when the backup was made.
    pub warnings: Vec<String>,
}

/// The outcome of `backup restore`. It is not on the wire; `chorusctl --json` prints it.
#[wire(PartialEq, Eq)]
pub struct Restored {
    /// The home that has everything now.
    pub home: String,
    pub created_at: Timestamp,
    pub agents: u64,
    pub sessions: u64,
    pub files: u64,
    pub bytes: u64,
}
