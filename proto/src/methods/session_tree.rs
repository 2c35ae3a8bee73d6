//! `session.tree`, `session.branch`, `session.diff`, `session.merge`: branches of sessions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::method;
use crate::message::Message;
use crate::session::{Session, Trigger};
use crate::working_set::Item;

method!(
    /// Returns the sessions of an agent and its live context as a tree, each with its parent.
    Tree = "session.tree", TreeParams => TreeResult
);
method!(
    /// Continues from a session in a second context.
    Branch = "session.branch", BranchParams => BranchResult
);
method!(
    /// Returns the messages in which two sessions differ.
    Diff = "session.diff", DiffParams => DiffResult
);
method!(
    /// Merges two sessions in a new live context.
    Merge = "session.merge", MergeParams => MergeResult
);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of sessions to pass over, as `next` gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Most sessions in the page; fewer come where a frame would get too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeResult {
    /// In the order of a drawing: each behind what it hangs from; where several hang from one, the line that was worked on last comes
    /// last.
    pub sessions: Vec<TreeSession>,
    /// Sessions that hang from nothing, in that order; with the first page, and empty on the others.
    pub roots: Vec<Uuid>,
    /// Parents that are no sessions of this agent; as `roots`.
    pub gaps: Vec<TreeGap>,
    /// The live context; null where there is none.
    pub live: Option<TreeLive>,
    /// Sessions in all.
    pub total: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

/// A session as the tree has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeSession {
    pub id: Uuid,
    pub short_id: String,
    pub session_id: String,
    pub saved_at: Timestamp,
    pub trigger: Trigger,
    pub message_count: u64,
    pub description: Option<String>,
    pub summary: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub parent_id: Option<Uuid>,
    /// The session or gap above it: the save before it of the same live context, else its parent. Null for roots.
    pub hangs_from: Option<Uuid>,
    /// Its parent hangs from itself, as only a file that was edited by hand can make it: the circle is cut here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cycle: bool,
    /// Why the file cannot be read, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<String>,
}

/// A parent that is no session of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeGap {
    pub id: Uuid,
    /// Of the agent that has it; null where it is gone.
    pub agent_name: Option<String>,
    pub session_id: Option<String>,
}

/// The live context as a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeLive {
    /// As in [`TreeSession`].
    pub hangs_from: Option<Uuid>,
    pub parent_id: Option<Uuid>,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub messages: u64,
    pub unsaved: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The agent that goes on with it; `agent` where it is left out.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub as_agent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchResult {
    /// The agent that goes on with it.
    pub agent: String,
    /// What is gone on from.
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// What the live context of that agent was saved as before.
    pub saved_first: Option<Session>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As `session` in `context.restore`.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Number of lines to pass over, as `next` gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Most lines in the page; fewer come where a frame would get too long. 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffResult<M = Message> {
    pub a: Session,
    pub b: Session,
    /// Messages at the beginning that say the same in both.
    pub common: u64,
    /// What is only in `a`, then what is only in `b`.
    pub lines: Vec<DiffLine<M>>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

/// Which of two sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Side {
    A,
    B,
}

/// A message that only one of the two has in its place.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffLine<M = Message> {
    pub side: Side,
    /// Its number in that session, from 1.
    pub number: u64,
    pub message: M,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergeParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As `session` in `context.restore`. The new context goes on from this one.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergeResult {
    pub a: Session,
    pub b: Session,
    /// Messages that both begin with, and the live context now too.
    pub common: u64,
    /// Messages in the live context now: those, and the account.
    pub messages: u64,
    /// What both lines did, as the live context has it.
    pub account: String,
    /// Chorus wrote all of it, no model.
    pub generated: bool,
    /// Where the two contradict each other: nothing was chosen.
    pub conflicts: Vec<Item>,
    /// What the live context was saved as before.
    pub saved_first: Option<Session>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
