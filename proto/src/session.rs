//! Saved contexts: session header and row.

use jiff::Timestamp;
use uuid::Uuid;

use crate::wire;
use crate::working_set::WorkingSet;

/// Schema version of the session files that this release writes.
pub const SESSION_SCHEMA: u32 = 2;

/// The reason of a save.
#[wire(Copy, PartialEq, Eq)]
pub enum Trigger {
    ManualSave,
    IdleTimeout,
    ContextClear,
    Shutdown,
    Destroy,
    Compact,
    Restore,
    Resume,
    Import,
}

impl Trigger {
    /// Returns the name on the wire and in session files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ManualSave => "manual_save",
            Self::IdleTimeout => "idle_timeout",
            Self::ContextClear => "context_clear",
            Self::Shutdown => "shutdown",
            Self::Destroy => "destroy",
            Self::Compact => "compact",
            Self::Restore => "restore",
            Self::Resume => "resume",
            Self::Import => "import",
        }
    }

    /// Says why a session was saved, in words that follow `saved`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::ManualSave => "by hand",
            Self::IdleTimeout => "after inactivity",
            Self::ContextClear => "when it was cleared",
            Self::Shutdown => "when the daemon stopped",
            Self::Destroy => "when the agent was deleted",
            Self::Compact => "for a compaction",
            Self::Restore => "before a restore",
            Self::Resume => "before a resume",
            Self::Import => "by an import",
        }
    }
}

/// Source of a summary.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum SummarySource {
    /// Written by the agent's model.
    Llm,
    /// Extracted from the conversation.
    Extractive,
    /// Given by a person, or imported.
    Given,
    #[default]
    None,
}

impl SummarySource {
    /// Returns the name on the wire and in session files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Extractive => "extractive",
            Self::Given => "given",
            Self::None => "none",
        }
    }
}

/// Input and output tokens.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct TokenPair {
    pub input: u64,
    pub output: u64,
}

impl TokenPair {
    /// Returns true if nothing was counted.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// The conversation of an agent that a session was saved from.
#[wire(PartialEq, Eq)]
pub struct ConversationRef {
    pub id: Uuid,
    /// Its name at the save.
    pub name: String,
}

/// The conversation of another program that an imported session holds. A session with a source may grow: importing the
/// conversation again adds what is new at the end.
#[wire(PartialEq, Eq)]
pub struct SessionSource {
    /// The program that the conversation was held with: `claude-code`, `codex`, `chatgpt`, `goose` and so on; `openai`,
    /// `markdown` and `chorus` if only the format is known.
    pub program: String,
    /// The id that the program gives it; for a subagent's, `<id of the conversation>/<id of the subagent>`. If the program
    /// gives none, a hash of the first messages.
    pub conversation: String,
    /// The absolute path of the directory that it was held in.
    #[omit_empty]
    pub project: Option<String>,
    /// The git branch at its end.
    #[omit_empty]
    pub branch: Option<String>,
    /// Time of its last message.
    pub ended_at: Timestamp,
    /// 1, or the next number if earlier messages had changed when it was imported again.
    pub revision: u32,
    /// True if its secrets are redacted, also in what is added later.
    #[omit_empty]
    pub redacted: bool,
    /// SHA-256 of the messages as they were imported: each one's line in the session file, with a newline after it.
    pub messages_sha256: String,
}

impl SessionSource {
    /// Returns the program, unless only the format of the transcript is known.
    #[must_use]
    pub fn known_program(&self) -> Option<&str> {
        Some(&*self.program).filter(|program| !["chorus", "markdown", "openai"].contains(program))
    }
}

/// All fields of a session file before its messages, in the order of the file.
#[wire(PartialEq)]
pub struct SessionHeader {
    pub schema: u32,
    pub id: Uuid,
    /// `<YYYY-MM-DD>_<slug>`, unique within the agent; also the file's name.
    pub session_id: String,
    pub agent_id: Uuid,
    pub agent_name: String,
    /// The conversation that it was saved from, unless that is `main`.
    #[omit_empty]
    pub conversation: Option<ConversationRef>,
    /// The conversation of another program that it holds, if it was imported.
    #[omit_empty]
    pub source: Option<SessionSource>,
    pub description: Option<String>,
    pub summary: Option<String>,
    #[serde(default)]
    pub summary_source: SummarySource,
    pub saved_at: Timestamp,
    pub started_at: Timestamp,
    pub trigger: Trigger,
    pub model: Option<String>,
    pub message_count: u64,
    pub query_count: u64,
    pub token_estimate: u64,
    #[serde(default)]
    pub restoration_tokens: TokenPair,
    pub parent_id: Option<Uuid>,
    /// The commit of the agent's workspace at the save, if it was recorded.
    #[omit_empty]
    pub workspace_commit: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub working_set: WorkingSet,
}

impl SessionHeader {
    /// Returns when the conversation was held last: the end of an imported one, otherwise the time of the save.
    #[must_use]
    pub fn held_at(&self) -> Timestamp {
        self.source.as_ref().map_or(self.saved_at, |source| source.ended_at)
    }
}

/// A session in lists and results.
#[wire(PartialEq)]
pub struct Session {
    #[serde(flatten)]
    pub header: SessionHeader,
    /// The shortest unique prefix of `id`, at least 8 characters.
    pub short_id: String,
    /// The shortest beginning of it that names this session; only in lists of the history.
    #[omit_empty]
    pub unique_prefix: Option<String>,
    /// The path of its file, which ends with `.json.gz` if it is compressed.
    pub file_path: String,
    /// False if the file is missing or cannot be read.
    pub available: bool,
    /// Why the file cannot be read, if it cannot.
    #[omit_empty]
    pub corrupt: Option<String>,
}
