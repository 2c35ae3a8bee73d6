//! Where imported sessions go.

use std::io;

use chorus_proto::{Message, SummarySource, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

/// Takes what an import finds, session by session.
pub trait ImportSink {
    /// A new session starts; the messages that follow are its own.
    fn begin_session(&mut self) -> io::Result<()>;

    /// One message, in order. `json` is its serialised form on one line (no newline), kept byte for byte where the
    /// source already had Chorus's form.
    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()>;

    /// The session is complete.
    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()>;

    /// A line (counted from 1; in a JSON list the entry) that could not be taken.
    fn report_skipped(&mut self, line: u64, reason: String);

    /// Bytes of the source read so far; called now and then. A source that is read twice counts half each time.
    fn report_progress(&mut self, _bytes: u64) {}
}

/// What a source says about a session besides its messages. `None`: it does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedMetadata {
    pub id: Option<Uuid>,
    pub session_id: Option<String>,
    pub description: Option<String>,
    pub summary: Option<String>,
    pub summary_source: Option<SummarySource>,
    pub saved_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub trigger: Option<Trigger>,
    pub model: Option<String>,
    pub parent_id: Option<Uuid>,
    /// The conversation of a helper that the main one started.
    pub side_chain: bool,
    pub tags: Vec<String>,
    pub working_set: Option<WorkingSet>,
    pub restoration_tokens: Option<TokenPair>,
}
