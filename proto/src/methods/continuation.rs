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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// `latest`, `latest~N`, a history number, a session_id, a UUID or a unique prefix of either.
    pub session: String,
    /// A new conversation to put it into, instead of `conversation`, whose context then stays as it is.
    pub as_conversation: Option<String>,
}

#[wire(PartialEq)]
pub struct ResumeResult {
    /// The session that the context continues.
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// The session in which the live context was saved first.
    pub saved_first: Option<Session>,
    /// The first message of the live context.
    pub acknowledgement: String,
    /// True if Chorus wrote it, not the model.
    pub generated: bool,
    /// Warnings for people, for example that the session has no summary.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct CompactParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Undo the last compaction in place, so that the model sees these messages again.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq)]
pub struct CompactResult {
    /// The session that the conversation continues; null with `undo`.
    pub session: Option<Session>,
    /// Messages in the live context now.
    pub messages: u64,
    /// Always null; the saved session is `session`.
    pub saved_first: Option<Session>,
    /// The first message of the live context; null with `undo`.
    pub acknowledgement: Option<String>,
    /// True if Chorus wrote it, not the model.
    pub generated: bool,
    /// The compaction that was done, or with `undo` undone.
    pub receipt: Receipt,
    #[omit_empty]
    pub warnings: Vec<String>,
}
