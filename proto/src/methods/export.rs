//! `session.export.*`: select sessions, then read each of them as text.

use jiff::Timestamp;

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

/// Format of an exported session.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum ExportFormat {
    /// The session file.
    #[default]
    Json,
    /// One message per line.
    Jsonl,
    /// Markdown for people; it can be imported.
    Md,
    /// A web page.
    Html,
    /// A transcript that Claude Code resumes.
    #[serde(rename = "claude-code")]
    ClaudeCode,
    /// A rollout that Codex resumes.
    Codex,
    /// A conversation that Gemini CLI resumes.
    Gemini,
    /// A conversation that `opencode import` takes.
    Opencode,
}

impl ExportFormat {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Md => "md",
            Self::Html => "html",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Returns the extension of files in this format.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => "jsonl",
            Self::Opencode => "json",
            Self::Json | Self::Jsonl | Self::Md | Self::Html => self.as_str(),
        }
    }

    /// Returns true for the files of other programs, which need a [`ExportTarget`].
    #[must_use]
    pub fn needs_target(self) -> bool {
        !matches!(self, Self::Json | Self::Jsonl | Self::Md | Self::Html)
    }
}

#[wire(params)]
pub struct SelectParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// These sessions, each named as in `context.restore`; by default all that match the other fields.
    pub session: Vec<String>,
    /// Include sessions of all agents, also deleted ones.
    #[serde(default)]
    pub all_agents: bool,
    /// Only sessions saved since then: a duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Index of the first entry.
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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    #[serde(default, rename = "as")]
    pub form: ExportFormat,
    /// Markdown without the block of data at its end, which an import needs to restore everything.
    #[omit_empty]
    pub plain: bool,
    /// Only, and always, with the format of another program: the conversation that its file is to hold. Capture then recognizes the
    /// conversation, and saves it once it has more.
    pub target: Option<ExportTarget>,
    /// Offset in the text: the `next` of the previous piece.
    pub offset: Option<u64>,
    /// The `fingerprint` of the previous piece. If the session has changed since, the request is refused.
    pub fingerprint: Option<String>,
}

/// The conversation of another program as which a session is exported.
#[wire(PartialEq, Eq)]
pub struct ExportTarget {
    /// The id of the conversation in that program: a UUID; for opencode `ses_` with letters and digits.
    pub id: String,
    /// The absolute path of the directory in which it continues.
    pub directory: String,
    /// For opencode, the model that continues it, as `provider/model`.
    #[omit_empty]
    pub model: Option<String>,
    /// For Gemini CLI, the time of the last change; it deletes old conversations. By default, when the session was saved.
    #[omit_empty]
    pub written_at: Option<Timestamp>,
}

#[wire(PartialEq)]
pub struct ReadResult {
    pub session: Session,
    pub data: String,
    /// Offset of the next piece; null at the end.
    pub next: Option<u64>,
    /// Fingerprint of the text; all pieces of one text have the same.
    #[omit_empty]
    pub fingerprint: Option<String>,
}
