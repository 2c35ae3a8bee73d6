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
    /// Finds the entries of an agent's memory that contain all words of the query, best first.
    Search = "memory.search", SearchParams => SearchResult
);
method!(
    /// Moves an entry to the trash.
    Remove = "memory.remove", RemoveParams => RemoveResult
);

/// How something came to be remembered.
#[wire(Copy, PartialEq, Eq)]
pub enum MemorySource {
    /// A person wrote it.
    Hand,
    /// The agent did, by its tool `remember`.
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

/// Something remembered.
#[wire(PartialEq, Eq)]
pub struct MemoryEntry {
    pub id: Uuid,
    /// The beginning of `id` that names it among what the agent remembers.
    pub short_id: String,
    pub text: String,
    /// The file in the workspace that it is about.
    pub path: Option<String>,
    /// Whether that is there now, in the workspace of the agent that was asked about; null without a path.
    pub path_exists: Option<bool>,
    /// The project whose agents share it; null: it is one agent's own.
    pub project: Option<String>,
    /// The agent that it was written for or by, by its name at that time.
    pub agent_name: String,
    /// On whose behalf.
    pub user: String,
    pub source: MemorySource,
    pub created_at: Timestamp,
    /// The message whose call of `remember` it came from.
    pub message_id: Option<String>,
    /// The session_id of the first save that holds this message; null while there is none.
    pub session_id: Option<String>,
    /// Whether the model is shown it; else there is no room for it.
    pub shown: bool,
}

#[wire(params)]
pub struct AddParams {
    pub agent: Option<String>,
    pub text: String,
    /// A file in the workspace that it is about.
    pub path: Option<String>,
    /// Share it with all agents of the agent's project.
    pub project: bool,
    /// Replace secrets; else they are kept and counted.
    pub redact: bool,
}

#[wire(PartialEq, Eq)]
pub struct AddResult {
    /// What was added, or what says the same already.
    pub entry: MemoryEntry,
    pub added: bool,
    /// Secrets seen in what was given.
    pub secrets_found: u64,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// How many to leave out at the start.
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    pub entries: Vec<MemoryEntry>,
    /// All that there are.
    pub total: u64,
    /// How many of them the model is shown.
    pub shown: u64,
    /// Tokens of those, as they are estimated.
    pub tokens: u64,
    /// The most that they may have.
    pub token_budget: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct SearchParams {
    pub agent: Option<String>,
    /// Words, in any case.
    pub query: String,
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct SearchResult {
    /// At most 500 of them.
    pub entries: Vec<MemoryEntry>,
    /// All that were found.
    pub total: u64,
}

#[wire(params)]
pub struct RemoveParams {
    pub agent: Option<String>,
    /// The entry's id, or a unique beginning of at least 4 characters.
    pub id: String,
}

#[wire(PartialEq, Eq)]
pub struct RemoveResult {
    pub entry: MemoryEntry,
    /// The entry of the trash that it is now.
    pub trash: String,
}
