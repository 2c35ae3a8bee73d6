//! `memory.*`: facts that agents know in every conversation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::method;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub text: String,
    /// A file in the workspace that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Share it with all agents of the agent's project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub project: bool,
    /// Replace secrets; else they are kept and counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddResult {
    /// What was added, or what says the same already.
    pub entry: MemoryEntry,
    pub added: bool,
    /// Secrets seen in what was given.
    pub secrets_found: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How many to leave out at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Words, in any case.
    pub query: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchResult {
    /// At most 500 of them.
    pub entries: Vec<MemoryEntry>,
    /// All that were found.
    pub total: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoveParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The entry's id, or a unique beginning of at least 4 characters.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoveResult {
    pub entry: MemoryEntry,
    /// The entry of the trash that it is now.
    pub trash: String,
}
