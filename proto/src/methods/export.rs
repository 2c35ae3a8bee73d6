//! `session.export.*`: select sessions, then read each of them as text.

use super::{method, wire};
use crate::session::Session;

method!(
    /// Selects the sessions to export. Does not change the numbers of the history.
    Select = "session.export.select", SelectParams => SelectResult
);
method!(
    /// Reads a piece of a session's text.
    Read = "session.export.read", ReadParams => ReadResult
);

/// The form a session takes outside.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum ExportFormat {
    /// The session file.
    #[default]
    Json,
    /// One message a line.
    Jsonl,
    /// Markdown for people, which an import reads back.
    Md,
    /// A page for a browser.
    Html,
}

impl ExportFormat {
    /// Returns the name on the wire, which is also the file extension.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Md => "md",
            Self::Html => "html",
        }
    }
}

#[wire(params)]
pub struct SelectParams {
    pub agent: Option<String>,
    /// These, each as in `context.restore`; without any, all that the other fields leave.
    pub session: Vec<String>,
    /// Of every agent, destroyed ones too.
    #[serde(default)]
    pub all_agents: bool,
    /// Saved since then: a duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// How many to leave out at the start.
    pub offset: Option<u64>,
}

/// `S` is how much of a session is read.
#[wire(PartialEq)]
pub struct SelectResult<S = Session> {
    /// Newest first, or in the order they were named.
    pub sessions: Vec<S>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ReadParams {
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    #[serde(default, rename = "as")]
    pub form: ExportFormat,
    /// Bytes of the text to leave out at the start: the `next` of the piece before.
    pub offset: Option<u64>,
    /// The `fingerprint` of the piece before: a piece of what was changed in the meantime is refused.
    pub fingerprint: Option<String>,
}

#[wire(PartialEq)]
pub struct ReadResult {
    pub session: Session,
    pub data: String,
    /// Offset of the next piece; null at the end.
    pub next: Option<u64>,
    /// Of what the text is made of: pieces of one text have the same.
    #[omit_empty]
    pub fingerprint: Option<String>,
}
