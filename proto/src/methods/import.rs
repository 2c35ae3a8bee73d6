//! `session.import.*`: upload a transcript in chunks, then commit it as sessions.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
use crate::session::Session;

method!(Begin = "session.import.begin", BeginParams => BeginResult);
method!(
    /// Sends the next bytes of the file.
    Add = "session.import.add", AddParams => AddResult
);
method!(
    /// Parses the uploaded file and saves its conversations as sessions (trigger `import`). One that was imported before
    /// grows, if the file only adds messages at its end.
    Commit = "session.import.commit", CommitParams => CommitResult
);

/// A transcript format.
#[wire(Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// Detect the format.
    #[default]
    Auto,
    /// A session file of Chorus, schema 1 or 2, or its messages as JSONL.
    Chorus,
    /// A Claude Code transcript (JSONL).
    ClaudeCode,
    /// OpenAI chat messages, as a JSON list or JSONL.
    Openai,
    /// A Codex rollout (JSONL).
    Codex,
    /// Markdown, as exported.
    Markdown,
    /// ChatGPT's export (conversations.json).
    Chatgpt,
    /// A session of goose (JSONL, or its export as JSON).
    Goose,
    /// A chat of Gemini CLI (JSONL, or JSON from older versions).
    Gemini,
    /// A conversation of opencode, as `opencode export` writes it (JSON).
    Opencode,
    /// The events of a session of GitHub Copilot CLI (JSONL).
    Copilot,
    /// A session of pi or OpenClaw (JSONL).
    Pi,
    /// Sessions of Hermes, as `hermes sessions export` writes them (JSONL).
    Hermes,
    /// The export of claude.ai (conversations.json).
    ClaudeAi,
    /// A conversation that LibreChat exported (JSON).
    Librechat,
    /// Chats that Open WebUI exported (JSON).
    OpenWebui,
    /// A thread of Amp, as `amp threads export` writes it (JSON).
    Amp,
    /// The history of aider (`.aider.chat.history.md`).
    Aider,
    /// A task of Cline, Roo Code or Kilo Code.
    Cline,
    /// Conversations with the Gemini app from Google Takeout (JSON).
    GeminiApps,
    /// A chat session of VS Code (JSON, or JSONL of changes).
    VscodeChat,
    /// A transcript of Cursor's agent (JSONL), or a conversation of the editor, as Chorus reads it from its database.
    Cursor,
}

#[wire(params)]
pub struct BeginParams {
    pub agent: Option<String>,
    #[serde(default)]
    pub from: ImportFormat,
    /// The file's name, for messages.
    pub file: Option<String>,
    /// The directory that the conversations were held in. Used only if the transcript does not name it.
    pub project: Option<String>,
    /// The title of the conversation. Used only if the transcript does not have it.
    pub title: Option<String>,
    /// When the file was last written. It is the time of messages for which the transcript has none; otherwise they get that of the import.
    pub written_at: Option<Timestamp>,
}

#[wire(PartialEq, Eq)]
pub struct BeginResult {
    /// Identifies this import in `add` and `commit`. It ends with the connection.
    pub import: u64,
}

#[wire(params)]
pub struct AddParams {
    pub import: u64,
    /// Text of the file. Set either this or `data_base64`.
    pub data: Option<String>,
    /// Bytes of the file in base64, if they are not UTF-8.
    pub data_base64: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct AddResult {
    /// Bytes received so far.
    pub received: u64,
}

#[wire(params)]
pub struct CommitParams {
    pub import: u64,
    /// Redact secrets; otherwise they are kept and counted.
    pub redact: bool,
    /// Leave conversations that are up to date out of `sessions`, and count them in `known`.
    pub skip_known: bool,
    /// Follow the rules of capture: leave out conversations that were deleted here, or held in excluded directories. A
    /// transcript of which nothing is left is then no error.
    pub as_capture: bool,
}

/// A line that was not imported.
#[wire(PartialEq, Eq)]
pub struct Skipped {
    /// Starts at 1; in a JSON list, the number of the entry.
    pub line: u64,
    pub reason: String,
    /// It was read, but is not part of the conversation: a branch that was left, or notes of the program.
    #[omit_empty]
    pub left_out: bool,
}

/// The effect of an import on one session.
#[wire(Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The conversation had not been imported before.
    New,
    /// Messages were added at the end of the session.
    Grown,
    /// The session had everything already.
    UpToDate,
    /// Messages that the former session has were changed or removed, so the conversation was saved beside it.
    Revision,
}

/// A session of [`CommitResult::sessions`], with what the import did.
#[wire(Copy, PartialEq, Eq)]
pub struct ImportedConversation {
    pub id: Uuid,
    pub outcome: ImportOutcome,
    /// Number of messages that were added; for a new session, all of them.
    pub added: u64,
}

#[wire(PartialEq)]
pub struct CommitResult {
    /// The sessions that hold the conversations of the file. With `skip_known`, only those that are new or have changed.
    pub sessions: Vec<Session>,
    /// One entry for each of `sessions`, in the same order.
    #[omit_empty]
    pub conversations: Vec<ImportedConversation>,
    /// At most 1,000.
    pub skipped: Vec<Skipped>,
    /// Number of all skipped lines.
    pub skipped_total: u64,
    /// How many of them were read, but are not part of the conversation.
    #[omit_empty]
    pub lines_left_out: Option<u64>,
    /// Number of secrets found; null if not checked.
    pub secrets_found: Option<u64>,
    /// Set if more than a tenth of the file could not be read: it may have another format.
    #[omit_empty]
    pub warning: Option<String>,
    /// Number of conversations that are up to date and left out with `skip_known`.
    #[omit_empty]
    pub known: Option<u64>,
    /// The sessions of these.
    #[omit_empty]
    pub known_sessions: Vec<Uuid>,
    /// Number of conversations that `as_capture` left out: forgotten, or excluded.
    #[omit_empty]
    pub left_out: Option<u64>,
}

impl CommitResult {
    /// Returns each session with what the import did. Daemons of earlier versions do not say that; their sessions are new.
    pub fn imported(&self) -> impl Iterator<Item = (&Session, ImportedConversation)> {
        self.sessions.iter().enumerate().map(|(at, session)| {
            let Session { header, .. } = session;
            let new = ImportedConversation { id: header.id, outcome: ImportOutcome::New, added: header.message_count };
            (session, self.conversations.get(at).copied().unwrap_or(new))
        })
    }
}
