//! `session.import.*`: upload a transcript in chunks, then commit it as sessions.

use super::{method, wire};
use crate::session::Session;

method!(Begin = "session.import.begin", BeginParams => BeginResult);
method!(
    /// Sends the next bytes of the file.
    Add = "session.import.add", AddParams => AddResult
);
method!(
    /// Parses the uploaded file and saves it as sessions (trigger `import`).
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
}

#[wire(params)]
pub struct BeginParams {
    pub agent: Option<String>,
    #[serde(default)]
    pub from: ImportFormat,
    /// The file's name, for messages.
    pub file: Option<String>,
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
    /// Skip conversations that already exist with as many messages.
    pub skip_known: bool,
}

/// A line that could not be imported.
#[wire(PartialEq, Eq)]
pub struct Skipped {
    /// Starts at 1; in a JSON list, the number of the entry.
    pub line: u64,
    pub reason: String,
}

#[wire(PartialEq)]
pub struct CommitResult {
    pub sessions: Vec<Session>,
    /// At most 1,000.
    pub skipped: Vec<Skipped>,
    /// Number of all skipped lines.
    pub skipped_total: u64,
    /// Number of secrets found; null if not checked.
    pub secrets_found: Option<u64>,
    /// Set if more than a tenth of the file was skipped: it may have another format.
    #[omit_empty]
    pub warning: Option<String>,
    /// Number of conversations that were skipped with `skip_known`.
    #[omit_empty]
    pub known: Option<u64>,
}
