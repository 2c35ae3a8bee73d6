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
    /// Number of sessions to pass over, as `next` gives it.
    pub offset: Option<u64>,
    /// Most sessions in the page; fewer come where a frame would get too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
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
#[wire(PartialEq)]
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
    #[omit_empty]
    pub cycle: bool,
    /// Why the file cannot be read, where it cannot.
    #[omit_empty]
    pub corrupt: Option<String>,
}

/// A parent that is no session of the agent.
#[wire(PartialEq, Eq)]
pub struct TreeGap {
    pub id: Uuid,
    /// Of the agent that has it; null where it is gone.
    pub agent_name: Option<String>,
    pub session_id: Option<String>,
}

/// The live context as a leaf.
#[wire(PartialEq, Eq)]
pub struct TreeLive {
    /// As in [`TreeSession`].
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
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    /// As in `context.restore`.
    pub at: Option<u64>,
    /// The agent that goes on with it; `agent` where it is left out.
    #[serde(rename = "as")]
    pub as_agent: Option<String>,
}

#[wire(PartialEq)]
pub struct BranchResult {
    /// The agent that goes on with it.
    pub agent: String,
    /// What is gone on from.
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// What the live context of that agent was saved as before.
    pub saved_first: Option<Session>,
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DiffParams {
    pub agent: Option<String>,
    /// As `session` in `context.restore`.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    pub own: bool,
    /// Number of lines to pass over, as `next` gives it.
    pub offset: Option<u64>,
    /// Most lines in the page; fewer come where a frame would get too long. 0: none.
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
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
#[wire(Copy, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// A message that only one of the two has in its place.
#[wire]
pub struct DiffLine<M = Message> {
    pub side: Side,
    /// Its number in that session, from 1.
    pub number: u64,
    pub message: M,
}

#[wire(params)]
pub struct MergeParams {
    pub agent: Option<String>,
    /// As `session` in `context.restore`. The new context goes on from this one.
    pub a: String,
    /// As `session` in `context.restore`.
    pub b: String,
    /// As in `context.restore`.
    pub own: bool,
}

#[wire(PartialEq)]
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
    #[omit_empty]
    pub warnings: Vec<String>,
}
