//! Numbers the commits of the journal: each moves a number, so that the note in the second place tells of every one that is missing.

use std::cell::Cell;

use rusqlite::Connection;

use super::super::journal::JournalPosition;
use super::position_file::PositionFile;
use crate::error::Result;

/// Counts for the thread that writes the journal.
#[derive(Debug, Default)]
pub struct CommitCounter {
    /// `None` for a database whose commits nobody counts.
    file: Option<PositionFile>,
    /// The numbers after the transaction that is about to be committed.
    pending: Cell<Option<JournalPosition>>,
}

impl CommitCounter {
    /// Counts on from what `note` was told last.
    #[must_use]
    pub fn new(note: PositionFile) -> Self {
        Self { file: Some(note), pending: Cell::new(None) }
    }

    /// Forgets what was counted of a transaction that came to nothing.
    pub fn reset(&self) {
        self.pending.set(None);
    }

    /// Counts the transaction that is open on `conn`, and changes something.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub fn count_commit(&self, conn: &Connection) -> Result<()> {
        if let Some(note) = &self.file {
            self.pending.set(Some(note.position().advance(conn)?));
        }
        Ok(())
    }

    /// Notes the transaction that was counted, if one was: it is committed.
    pub fn record_commit(&self) {
        if let (Some(reached), Some(note)) = (self.pending.take(), &self.file) {
            note.record_commit(reached);
        }
    }

    /// Brings everything to the disk before the journal is closed, and notes it, where commits do not do so themselves.
    pub fn close(&self) {
        if let Some(Err(error)) = self.file.as_ref().map(PositionFile::sync_if_deferred) {
            tracing::warn!(%error, "the numbers beside the journal are older than its last commits");
        }
    }
}
