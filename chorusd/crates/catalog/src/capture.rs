//! Rows of capture: the transcripts of other programs as they were when they were last read, and the conversations that
//! must not come back because they were deleted here.

use std::fmt::Debug;
use std::path::PathBuf;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// A transcript, or a conversation in a database, as it was when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFile {
    /// The name of the program.
    pub source: String,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// The bytes that were read, up to the end of the last complete line.
    pub read_bytes: u64,
    pub size: u64,
    pub modified_at: Timestamp,
    pub conversations: u64,
    pub messages: u64,
    /// The sessions that hold its conversations; `None` if an earlier version read it.
    pub sessions: Option<Vec<Uuid>>,
    /// Lines that could not be read.
    pub skipped_lines: u64,
    /// The first of them.
    pub skipped: Option<SkippedLine>,
    /// Of a conversation in a database, the marker of its last change. It has the path of the database with its id below.
    pub marker: Option<String>,
    /// Why the file could not be captured; what was captured before stays.
    pub failure: Option<String>,
    /// It was read, but could not be saved.
    pub unsaved: bool,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Starts at 1.
    pub line: u64,
    pub reason: String,
}

/// The tables of capture. They are about the files of one machine.
pub trait CaptureTable: Debug + Send + Sync {
    /// Returns all transcripts that were read, in no particular order.
    fn files(&self) -> CatalogRead<'_, Vec<CapturedFile>>;

    /// Records that a transcript was read, in place of what was recorded for its path.
    fn record(&self, file: CapturedFile) -> CatalogWrite<()>;

    /// Forgets the state of transcripts without captured conversations, so that they are read again: the inode becomes 0,
    /// and the marker `None`.
    fn forget_held_back(&self) -> CatalogWrite<()>;

    /// Forgets the state of all transcripts in the same way.
    fn read_all_again(&self) -> CatalogWrite<()>;

    /// Returns the hashes of the conversations that are not captured again.
    fn deleted_conversations(&self) -> CatalogRead<'_, Vec<String>>;

    /// Adds the hash of a conversation that is not captured again.
    fn add_tombstone(&self, hash: String) -> CatalogWrite<()>;

    /// Removes the hashes of conversations, which are captured again.
    fn remove_tombstones(&self, hashes: Vec<String>) -> CatalogWrite<()>;
}
