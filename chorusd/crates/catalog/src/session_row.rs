//! Rows of sessions.

use std::sync::Arc;

use chorus_base::error::Error;
use chorus_journal::to_nanos;
use chorus_proto::{ErrorKind, SessionHeader};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{ImportedUsage, PendingSummary};

/// A row of the table of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub header: SessionHeader,
    /// Hash of the messages, see [`chorus_session::MessageHash`].
    pub sha256: String,
    /// Stamp of the file when it was read or written; a different one means that the file has changed. Empty if this
    /// machine has no file of this row.
    pub file_stamp: String,
    /// Reason why the file cannot be read, if it cannot.
    pub corrupt: Option<String>,
    pub last_used_at: Timestamp,
    /// Position in the order of sessions: nanoseconds since 1970 by [`to_nanos`], or more if the clock was set back.
    pub place: i64,
    /// The object that has the messages; `None` if only the file has them. SQLite stores none.
    pub body: Option<BodyRow>,
}

/// The columns that name the messages of a session as an object. See docs/design/session-objects.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRow {
    pub key: String,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of the messages, each with its newline.
    pub body_bytes: u64,
    /// Bytes of the messages and of the index behind them.
    pub object_bytes: u64,
    /// Hash of the messages, see [`chorus_session::MessageHash`].
    pub sha256: String,
    /// SHA-256 of the index, as 64 hex digits.
    pub index_sha256: String,
}

impl SessionRow {
    /// Returns true if messages with this hash, of a file with `header`, are those that were saved. An import that was
    /// interrupted may have added some which only the file knows of.
    #[must_use]
    pub fn has_saved(&self, header: &SessionHeader, sha256: &str) -> bool {
        self.sha256 == sha256 || header.source.as_ref().is_some_and(|source| source.messages_sha256 == sha256)
    }

    /// Error for a row whose id exists, or whose name the agent already has.
    #[must_use]
    pub fn name_taken_error(&self) -> Error {
        Error::new(ErrorKind::AlreadyExists, format!("this agent already has a session {}", self.header.session_id))
    }
}

/// The place of a new session in the order of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPlacement {
    /// At the `place` of its row.
    AtOwnPlace,
    /// After all others, whatever the clock says: at the `place` of its row, or one after the highest place if that is more.
    Last,
}

/// Returns the position of a session in the order of sessions, unless it has to come after all others.
#[must_use]
pub fn place_of(header: &SessionHeader) -> i64 {
    to_nanos(header.held_at())
}

/// A session to be inserted.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub row: SessionRow,
    pub placement: SessionPlacement,
    /// Queues the session for a summary, in the same commit.
    pub summary: Option<PendingSummary>,
    /// The usage of an imported conversation, which is recorded in the same commit.
    pub usage: Option<Arc<ImportedUsage>>,
    /// True for one of many sessions: its row may wait a moment for others, to share their commit.
    pub is_one_of_many: bool,
}

impl NewSession {
    /// Makes a session without a summary and without usage.
    #[must_use]
    pub fn new(row: SessionRow, placement: SessionPlacement) -> Self {
        Self { row, placement, summary: None, usage: None, is_one_of_many: false }
    }
}

/// Identifies the file that a row of a session was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStamp {
    /// Position in the table, for the next page. Rows that are inserted later have higher ones.
    pub position: i64,
    pub id: Uuid,
    /// Hash of the messages.
    pub sha256: String,
    pub file_stamp: String,
}

/// A session whose row was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedSession {
    pub id: Uuid,
    pub agent: Uuid,
    pub deleted_at: Timestamp,
}

/// Time of the last use of a session, its id and its agent's id.
pub type UnusedSession = (Timestamp, Uuid, Uuid);
