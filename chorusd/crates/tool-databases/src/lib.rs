//! Reads the SQLite databases in which opencode, goose, Hermes, OpenClaw and Cursor keep conversations: lists them with a marker
//! that changes whenever a conversation does, and writes one at a time as the document that the tool itself exports, which
//! crate `chorus-session` imports.
//!
//! A database is opened read-only, and never as immutable: what the tool wrote last is often only in the write-ahead log.
//! Each document is written from one transaction, row by row, so that its memory does not depend on its length. Only the
//! tables and columns of conversations are read; some of these databases have credentials in others.
//!
//! Absent on purpose: importing, watching for changes, and any write.

#![warn(unreachable_pub)]

mod columns;
mod cursor;
mod goose;
mod hermes;
mod openclaw;
mod opencode;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// How long a write of the tool is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Reason why a database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It has none of the known sets of tables.
    #[error("not a database of opencode, goose, Hermes, OpenClaw or Cursor")]
    UnknownTool,
    #[error("no conversation {0}")]
    NoConversation(String),
}

impl From<serde_json::Error> for DatabaseError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

type Result<T> = std::result::Result<T, DatabaseError>;

/// The program that a database belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Cursor,
    Goose,
    Hermes,
    OpenClaw,
    Opencode,
}

/// A conversation of a database.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ConversationEntry {
    /// Its id in the database.
    pub id: String,
    /// A text that is another one after each change of the conversation.
    pub changed: String,
}

/// A database that is open for reading.
#[derive(Debug)]
pub struct ConversationDatabase {
    connection: Connection,
    tool: Tool,
}

/// Returns whether `start`, the first bytes of a file, are those of a database.
#[must_use]
pub fn is_database(start: &[u8]) -> bool {
    start.starts_with(SQLITE_MAGIC)
}

impl ConversationDatabase {
    /// Opens the database of a tool, which is known by its tables.
    ///
    /// # Errors
    /// It cannot be read, or belongs to none of the tools.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Nothing that the file itself defines is run.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "query_only", true)?;
        let tool = detect(&connection)?;
        Ok(Self { connection, tool })
    }

    #[must_use]
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// Lists the conversations, the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn list(&self) -> Result<Vec<ConversationEntry>> {
        match self.tool {
            Tool::Cursor => cursor::list(&self.connection),
            Tool::Goose => goose::list(&self.connection),
            Tool::Hermes => hermes::list(&self.connection),
            Tool::OpenClaw => openclaw::list(&self.connection),
            Tool::Opencode => opencode::list(&self.connection),
        }
    }

    /// Writes a conversation as a document of the tool.
    ///
    /// # Errors
    /// There is no such conversation, the database cannot be read, or `out` cannot be written.
    pub fn write_document(&self, id: &str, out: &mut dyn Write) -> Result<()> {
        // The reads of a document see one state of the database.
        let transaction = self.connection.unchecked_transaction()?;
        match self.tool {
            Tool::Cursor => cursor::write_document(&transaction, id, out),
            Tool::Goose => goose::write_document(&transaction, id, out),
            Tool::Hermes => hermes::write_document(&transaction, id, out),
            Tool::OpenClaw => openclaw::write_document(&transaction, id, out),
            Tool::Opencode => opencode::write_document(&transaction, id, out),
        }
    }
}

fn detect(connection: &Connection) -> Result<Tool> {
    let has = |table: &str, column: &str| Ok::<_, DatabaseError>(columns::of_table(connection, table)?.has(column));
    if has("part", "message_id")? && has("session", "directory")? {
        Ok(Tool::Opencode)
    } else if has("messages", "content_json")? && has("sessions", "working_dir")? {
        Ok(Tool::Goose)
    } else if has("transcript_events", "event_json")? && has("session_windows", "session_id")? {
        Ok(Tool::OpenClaw)
    } else if has("messages", "tool_calls")? && has("sessions", "started_at")? {
        Ok(Tool::Hermes)
    } else if has("cursorDiskKV", "key")? {
        Ok(Tool::Cursor)
    } else {
        Err(DatabaseError::UnknownTool)
    }
}

#[cfg(test)]
mod tests;
