//! Position of a journal, in two numbers: each commit that changes something increments one of them.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _};

use super::{events, named_values};

/// Key of the value that counts the commits without an event.
const COMMITS_KEY: &str = "commits";

/// The numbers as of a commit. Neither ever decreases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalPosition {
    /// Number of the newest event.
    pub event: u64,
    /// Number of commits without an event: pins, rewinds, marks of saved sessions.
    pub commits: u64,
}

impl JournalPosition {
    /// Reads the position of the journal `conn`.
    pub(crate) fn read(conn: &Connection) -> Result<Self> {
        // Journals of earlier releases have no such row, or not even the table.
        let commits = conn
            .prepare("SELECT value FROM marks WHERE name = ?1")
            .and_then(|mut statement| statement.query_row([COMMITS_KEY], |row| row.get::<_, String>(0)).optional());
        let commits = commits.ok().flatten().and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Self { event: events::last_seq(conn)?, commits })
    }

    /// Returns the position after the transaction that is open on `conn` and changes something; `self` is the position
    /// before it. Increments the commit counter if the transaction has no event.
    pub(crate) fn advance(self, conn: &Connection) -> Result<Self> {
        let event = events::last_seq(conn)?;
        if event > self.event {
            return Ok(Self { event, ..self });
        }
        let commits = self.commits + 1;
        named_values::upsert_value(conn, COMMITS_KEY, &commits.to_string())?;
        Ok(Self { event, commits })
    }

    /// Returns whether this journal lacks a commit that a journal at the position `noted` had.
    #[must_use]
    pub(crate) fn is_behind(self, noted: Self) -> bool {
        self.event < noted.event || self.commits < noted.commits
    }
}
