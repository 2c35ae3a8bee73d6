//! Numbers the commits of the journal: each moves a number, so that the note in the second place tells of every one that is missing.

use std::cell::Cell;

use rusqlite::Connection;

use super::super::journal::Reached;
use super::newest::Note;
use crate::failure::Result;

/// Counts for the thread that writes the journal.
#[derive(Debug, Default)]
pub struct Tally {
    /// `None` for a database whose commits nobody counts.
    note: Option<Note>,
    /// The numbers after the transaction that is about to be committed.
    next: Cell<Option<Reached>>,
}

impl Tally {
    /// Counts on from what `note` was told last.
    #[must_use]
    pub fn new(note: Note) -> Self {
        Self { note: Some(note), next: Cell::new(None) }
    }

    /// Forgets what was counted of a transaction that came to nothing.
    pub fn begin(&self) {
        self.next.set(None);
    }

    /// Counts the transaction that is open on `conn`, and changes something.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub fn count(&self, conn: &Connection) -> Result<()> {
        if let Some(note) = &self.note {
            self.next.set(Some(note.reached().counting(conn)?));
        }
        Ok(())
    }

    /// Notes the transaction that was counted, if one was: it is committed.
    pub fn committed(&self) {
        if let (Some(reached), Some(note)) = (self.next.take(), &self.note) {
            note.committed(reached);
        }
    }

    /// Brings everything to the disk before the journal is closed, and notes it, where commits do not do so themselves.
    pub fn close(&self) {
        if let Some(Err(error)) = self.note.as_ref().map(Note::settle) {
            tracing::warn!(%error, "the numbers beside the journal are older than its last commits");
        }
    }
}
