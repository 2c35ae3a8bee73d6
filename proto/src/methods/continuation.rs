//! `context.resume`, `context.compact`: continue in a fresh context.

use super::{method, wire};
use crate::session::Session;
use crate::working_set::Receipt;

method!(
    /// Starts a fresh context that contains only a session's summary and working set.
    Resume = "context.resume", ResumeParams => ResumeResult
);
method!(
    /// Saves the context and continues in a fresh one; or undoes the last compaction of the window.
    Compact = "context.compact", CompactParams => CompactResult
);

#[wire(params)]
pub struct ResumeParams {
    pub agent: Option<String>,
    /// `latest`, `latest~N`, a history number, a session_id, a UUID or a unique prefix of either.
    pub session: String,
}

#[wire(PartialEq)]
pub struct ResumeResult {
    /// What is gone on from.
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// What the live context was saved as before.
    pub saved_first: Option<Session>,
    /// The first message of the live context.
    pub acknowledgement: String,
    /// Chorus wrote it, not the model.
    pub generated: bool,
    /// What a person should know, for example that the session has no summary.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct CompactParams {
    pub agent: Option<String>,
    /// Show the messages again that the last compaction in place took out of the window.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq)]
pub struct CompactResult {
    /// What the conversation goes on from; null with `undo`.
    pub session: Option<Session>,
    /// Messages in the live context now.
    pub messages: u64,
    /// Always null: `session` is what was saved.
    pub saved_first: Option<Session>,
    /// The first message of the live context; null with `undo`.
    pub acknowledgement: Option<String>,
    /// Chorus wrote it, not the model.
    pub generated: bool,
    /// What was done, or with `undo` taken back.
    pub receipt: Receipt,
    #[omit_empty]
    pub warnings: Vec<String>,
}
