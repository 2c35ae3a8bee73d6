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
    pub file_path: String,
    /// False if the file is missing or cannot be read.
    pub available: bool,
    /// Why the file cannot be read, if it cannot.
    #[omit_empty]
    pub corrupt: Option<String>,
}
