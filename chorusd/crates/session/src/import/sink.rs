//! The receiver of imported sessions.

use std::io;

use chorus_proto::{Message, SummarySource, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use super::imported_call::ImportedCall;

/// Receives what an import finds, session by session.
pub trait ImportSink {
    /// Begins a new session. The messages that follow belong to it.
    fn begin_session(&mut self) -> io::Result<()>;

    /// Adds the next message. `json` is its serialised form on one line (no newline), byte for byte as in the source if
    /// that is in Chorus's own format.
    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()>;

    /// Adds the usage of a model call of the session. The same call may be added again with other counts.
    fn add_call(&mut self, _call: ImportedCall) {}

    /// Ends the session.
    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()>;

    /// Reports a line (counted from 1; in a JSON list the entry) that was skipped.
    fn report_skipped(&mut self, line: u64, reason: String);

    /// Reports a line that was read, but is not part of the conversation: a branch that was left, or notes of the program.
    fn report_left_out(&mut self, line: u64, reason: String) {
        self.report_skipped(line, reason);
    }

    /// Reports the bytes of the source read so far, at irregular intervals. Each pass over a source that is read twice
    /// counts half.
    fn report_progress(&mut self, _bytes: u64) {}
}

/// Metadata of a session that an import found. `None` means that the source does not contain it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedMetadata {
    pub id: Option<Uuid>,
    /// The program, if it is another than the format tells.
    pub program: Option<String>,
    /// The id that the program gives the conversation.
    pub conversation: Option<String>,
    /// The directory that the conversation was held in.
    pub project: Option<String>,
    /// The git branch at its end.
    pub branch: Option<String>,
    /// The source says that secrets were redacted.
    pub redacted: bool,
    pub session_id: Option<String>,
    pub description: Option<String>,
    pub summary: Option<String>,
    pub summary_source: Option<SummarySource>,
    pub saved_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub trigger: Option<Trigger>,
    pub model: Option<String>,
    pub parent_id: Option<Uuid>,
    /// The session is the conversation of a subagent that the main conversation started.
    pub side_chain: bool,
    pub tags: Vec<String>,
    pub working_set: Option<WorkingSet>,
    pub restoration_tokens: Option<TokenPair>,
}
