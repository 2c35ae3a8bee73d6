//! Counts the commits of the journal. Each commit advances the journal's position, so that the position file reveals
//! every missing one.

use std::cell::Cell;

use chorus_base::error::Result;
use rusqlite::Connection;

use super::super::journal::JournalPosition;
use super::position_file::PositionFile;

/// Commit counter of the journal's writer thread.
#[derive(Debug, Default)]
pub(crate) struct CommitCounter {
    /// `None` for a database whose commits are not counted.
    file: Option<PositionFile>,
    /// Position after the transaction that is about to be committed.
    pending: Cell<Option<JournalPosition>>,
}

impl CommitCounter {
    /// Continues from the position of `note`.
    #[must_use]
    pub(crate) fn new(note: PositionFile) -> Self {
        Self { file: Some(note), pending: Cell::new(None) }
    }

    /// Forgets the count of a transaction that was rolled back.
    pub(crate) fn reset(&self) {
        self.pending.set(None);
    }

    /// Counts the transaction that is open on `conn` and changes something.
    pub(crate) fn count_commit(&self, conn: &Connection) -> Result<()> {
        if let Some(note) = &self.file {
            self.pending.set(Some(note.position().advance(conn)?));
        }
        Ok(())
    }

    /// Writes the position of the counted transaction, if any, after its commit.
    pub(crate) fn record_commit(&self) {
        if let (Some(reached), Some(note)) = (self.pending.take(), &self.file) {
            note.record_commit(reached);
        }
    }

    /// Syncs the journal and writes the position before the journal is closed, if commits are not synced.
    pub(crate) fn close(&self) {
        if let Some(Err(error)) = self.file.as_ref().map(PositionFile::sync_if_deferred) {
            tracing::warn!(%error, "the position file is older than the last commits of the journal");
        }
    }
}
