//! Tells how far a journal has come, by two numbers: each commit that changes something makes one of them greater.

use rusqlite::{Connection, OptionalExtension as _};

use super::{events, named_values};
use crate::error::Result;

/// Name of the mark that counts the commits without an event.
const COMMITS_KEY: &str = "commits";

/// The numbers as of some commit. Neither ever goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalPosition {
    /// Number of the newest event.
    pub event: u64,
    /// Commits that told no event: pins, rewinds, what is noted of saves.
    pub commits: u64,
}

impl JournalPosition {
    /// Reads the numbers of the journal `conn`.
    pub fn read(conn: &Connection) -> Result<Self> {
        // Journals of earlier releases have no such mark, or not even the table.
        let commits = conn
            .prepare("SELECT value FROM marks WHERE name = ?1")
            .and_then(|mut statement| statement.query_row([COMMITS_KEY], |row| row.get::<_, String>(0)).optional());
        let commits = commits.ok().flatten().and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Self { event: events::last_seq(conn)?, commits })
    }

    /// Returns the numbers after the transaction that is open on `conn`, which changes something; `self` is what was before. Counts it, if
    /// no event of its own does.
    pub fn advance(self, conn: &Connection) -> Result<Self> {
        let event = events::last_seq(conn)?;
        if event > self.event {
            return Ok(Self { event, ..self });
        }
        let commits = self.commits + 1;
        named_values::upsert_value(conn, COMMITS_KEY, &commits.to_string())?;
        Ok(Self { event, commits })
    }

    /// Returns true if something is missing that a journal with the numbers `noted` had.
    #[must_use]
    pub fn is_behind(self, noted: Self) -> bool {
        self.event < noted.event || self.commits < noted.commits
    }
}
