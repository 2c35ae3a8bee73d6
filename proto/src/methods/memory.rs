//! `memory.*`: facts that agents know in every conversation.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};

method!(
    /// Adds a fact, unless an entry says the same.
    Add = "memory.add", AddParams => AddResult
);
method!(
    /// Lists an agent's memory in the order in which its model is shown it.
    List = "memory.list", ListParams => ListResult
);
method!(
    /// Finds the entries of an agent's memory, and the passages of its notes in docs/, that contain all words of the query,
    /// best first. If none does, finds those with at least half of the words that say something.
    Search = "memory.search", SearchParams => SearchResult
);
method!(
    /// Moves an entry to the trash.
    Remove = "memory.remove", RemoveParams => RemoveResult
);

/// Source of a memory.
#[wire(Copy, PartialEq, Eq)]
pub enum MemorySource {
    /// A person added it.
    Hand,
    /// The agent added it with its tool `remember`.
    Tool,
}

impl MemorySource {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hand => "hand",
            Self::Tool => "tool",
        }
    }
}

/// A memory.
#[wire(PartialEq, Eq)]
pub struct MemoryEntry {
    pub id: Uuid,
    /// The shortest unique prefix of `id` among the agent's memories.
    pub short_id: String,
    pub text: String,
    /// The file in the workspace that it is about.
    pub path: Option<String>,
    /// True if the file exists in the workspace of the requested agent; null without a path.
    pub path_exists: Option<bool>,
    /// The project whose agents share it; null if it belongs to one agent.
    pub project: Option<String>,
    /// Name, at that time, of the agent that it was added for or by.
    pub agent_name: String,
    /// The requester.
    pub user: String,
    pub source: MemorySource,
    pub created_at: Timestamp,
    /// The message with the call of `remember`.
    pub message_id: Option<String>,
    /// The session_id of the first save that contains this message; null if there is none yet.
    pub session_id: Option<String>,
    /// True if the model sees it; false if it exceeds the token budget.
    pub shown: bool,
}

#[wire(params)]
pub struct AddParams {
    pub agent: Option<String>,
    pub text: String,
    /// The file in the workspace that it is about.
    pub path: Option<String>,
    /// Share it with all agents of the agent's project.
    pub project: bool,
    /// Redact secrets; otherwise they are kept and counted.
    pub redact: bool,
}

#[wire(PartialEq, Eq)]
pub struct AddResult {
    /// The new memory, or the existing one with the same text.
    pub entry: MemoryEntry,
    pub added: bool,
    /// Number of secrets found.
    pub secrets_found: u64,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// Index of the first entry.
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    pub entries: Vec<MemoryEntry>,
    /// Number of all entries.
    pub total: u64,
    /// Number of memories that the model sees.
    pub shown: u64,
    /// Estimated tokens of the memories that the model sees.
    pub tokens: u64,
    /// Limit of these tokens.
    pub token_budget: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct SearchParams {
    pub agent: Option<String>,
    /// Words; upper and lower case are the same.
    pub query: String,
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct SearchResult {
    /// At most 500.
    pub entries: Vec<MemoryEntry>,
    /// Number of all entries that match.
    pub total: u64,
    /// Passages of the agent's notes in docs/, at most 50.
    #[omit_empty]
    pub docs: Vec<DocPassage>,
    /// True if nothing contains all words.
    #[omit_empty]
    pub partial: bool,
}

/// A paragraph, a list item or a heading of a file in an agent's docs/.
#[wire(PartialEq, Eq)]
pub struct DocPassage {
    /// Path of the file, from the agent's directory: `docs/deploy.md`.
    pub path: String,
    /// Number of the line with the first word that was found, from 1.
    pub line: u64,
    /// A part of the passage, on one line.
    pub snippet: String,
    /// Start and end of each word in `snippet` that was found, in characters, in order.
    pub marks: Vec<(u64, u64)>,
}

#[wire(params)]
pub struct RemoveParams {
    pub agent: Option<String>,
    /// The entry's id, or a unique prefix of at least 4 characters.
    pub id: String,
}

#[wire(PartialEq, Eq)]
pub struct RemoveResult {
    pub entry: MemoryEntry,
    /// Its entry in the trash.
    pub trash: String,
}
