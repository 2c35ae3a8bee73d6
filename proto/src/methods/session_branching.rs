//! `session.tree`, `session.branch`, `session.diff`, `session.merge`: branches of sessions.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
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

#[wire(params)]
pub struct TreeParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// `agent` is the caller's current agent and was not named by a person, so imported conversations are in the tree, too.
    pub own: bool,
    /// Index of the first session: the `next` of the previous page.
    pub offset: Option<u64>,
    /// Maximum number of sessions; fewer are returned if the frame would be too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct TreeResult {
    /// In drawing order: each after the one that it hangs from; if several hang from one, the branch with the latest
    /// work is last.
    pub sessions: Vec<TreeSession>,
    /// Sessions without a parent, in this order; only on the first page.
    pub roots: Vec<Uuid>,
    /// Parents that are not sessions of this agent; only on the first page.
    pub gaps: Vec<TreeGap>,
    /// The live context; null if there is none.
    pub live: Option<TreeLive>,
    /// Number of all sessions.
    pub total: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

/// A session in the tree.
#[wire(PartialEq)]
pub struct TreeSession {
    pub id: Uuid,
    pub short_id: String,
    pub session_id: String,
    pub saved_at: Timestamp,
    /// Of an imported conversation, when it ended.
    #[omit_empty]
    pub ended_at: Option<Timestamp>,
    pub trigger: Trigger,
    pub message_count: u64,
    pub description: Option<String>,
    pub summary: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub parent_id: Option<Uuid>,
    /// The session or gap above it: the previous save of the same live context, otherwise its parent. Null for roots.
    pub hangs_from: Option<Uuid>,
    /// Its parents form a cycle, which only a file edited by hand can cause; the cycle is cut here.
    #[omit_empty]
    pub cycle: bool,
    /// Why the file cannot be read, if it cannot.
    #[omit_empty]
    pub corrupt: Option<String>,
}

/// A parent that is not a session of the agent.
#[wire(PartialEq, Eq)]
pub struct TreeGap {
    pub id: Uuid,
    /// Name of its agent; null if it is gone.
    pub agent_name: Option<String>,
    pub session_id: Option<String>,
}

/// The live context as a leaf of the tree.
#[wire(PartialEq, Eq)]
pub struct TreeLive {
    /// The same as in [`TreeSession`].
    pub hangs_from: Option<Uuid>,
    pub parent_id: Option<Uuid>,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub messages: u64,
    pub unsaved: u64,
}

#[wire(params)]
pub struct BranchParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    /// As in `context.restore`.
    pub at: Option<u64>,
    /// The agent that continues it, by default `agent`.
    #[serde(rename = "as")]
    pub as_agent: Option<String>,
    /// A new conversation of that agent to put it into, so that nothing is displaced.
    pub as_conversation: Option<String>,
}

#[wire(PartialEq)]
pub struct BranchResult {
    /// The agent that continues it.
    pub agent: String,
    /// The session that the context continues.
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// The session in which that agent's live context was saved first.
    pub saved_first: Option<Session>,
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DiffParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As `session` in `context.restore`.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    pub own: bool,
    /// Index of the first line: the `next` of the previous page.
    pub offset: Option<u64>,
    /// Maximum number of lines; fewer are returned if the frame would be too long. 0 returns none.
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
pub struct DiffResult<M = Message> {
    pub a: Session,
    pub b: Session,
    /// Number of messages at the start that are the same in both.
    pub common: u64,
    /// The rest of `a`, then the rest of `b`.
    pub lines: Vec<DiffLine<M>>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

/// One of two sessions.
#[wire(Copy, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// A message that is in only one of the two sessions.
#[wire]
pub struct DiffLine<M = Message> {
    pub side: Side,
    /// Its number in that session, starting at 1.
    pub number: u64,
    pub message: M,
}

#[wire(params)]
pub struct MergeParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As `session` in `context.restore`. The new context continues this session.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    pub own: bool,
    /// A new conversation to put it into, instead of `conversation`, whose context then stays as it is.
    pub as_conversation: Option<String>,
}

#[wire(PartialEq)]
pub struct MergeResult {
    pub a: Session,
    pub b: Session,
    /// Number of messages at the start of both, and now of the live context.
    pub common: u64,
    /// Messages in the live context now: the common ones and the account.
    pub messages: u64,
    /// The account of both branches in the live context.
    pub account: String,
    /// True if Chorus wrote all of it, without a model.
    pub generated: bool,
    /// Contradictions between the two; none is resolved.
    pub conflicts: Vec<Item>,
    /// The session in which the live context was saved first.
    pub saved_first: Option<Session>,
    #[omit_empty]
    pub warnings: Vec<String>,
}
