//! Agents in results: state, live context and usage.

use jiff::Timestamp;
use uuid::Uuid;

use crate::methods::conversations::{Attached, Conversation};
use crate::session::TokenPair;
use crate::wire;

/// Existence of an agent.
#[wire(Copy, PartialEq, Eq)]
pub enum AgentStatus {
    Active,
    Destroyed,
}

/// State of an agent; `active` means that it has a live context.
#[wire(Copy, PartialEq, Eq)]
pub enum AgentState {
    Idle,
    Active,
    Destroyed,
}

/// Statistics of an agent's live context.
#[wire(PartialEq, Eq)]
pub struct ContextInfo {
    pub messages: u64,
    pub token_estimate: u64,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    /// When the context is saved and cleared if no message comes; null: never.
    pub idle_deadline_at: Option<Timestamp>,
    pub parent_id: Option<Uuid>,
    /// Messages that are in no session yet.
    pub unsaved: u64,
    /// Tokens that resuming cost, not counted in the conversation; missing if none.
    #[serde(default, skip_serializing_if = "TokenPair::is_zero")]
    pub restoration_tokens: TokenPair,
    /// Set if the agent has a model.
    #[omit_empty]
    pub meter: Option<Meter>,
}

/// How full the model's window would be with the next request: prompt, notes, working set, tools and visible messages.
#[wire(Copy, PartialEq, Eq)]
pub struct Meter {
    /// Tokens of the next request.
    pub used: u64,
    /// Context length of the model, including the reply; null if unknown.
    pub window: Option<u64>,
    /// True if the estimate is corrected by the provider's earlier counts.
    pub calibrated: bool,
    /// The tools that the model sees, if the context length is too small for all tools of the agent.
    #[omit_empty]
    pub tools: Option<ToolsShown>,
    /// How `used` was found; older daemons, which always estimate, do not say it.
    #[omit_empty]
    pub source: Option<TokenSource>,
}

/// How a number of tokens was found.
#[wire(Copy, PartialEq, Eq)]
pub enum TokenSource {
    /// Counted with the model's vocabulary.
    Exact,
    /// Counted by the provider, but for a small part at the end.
    Provider,
    /// Estimated from the text, and corrected by what the provider counted before.
    Estimated,
}

/// The tools that a model with a small context length sees.
#[wire(Copy, PartialEq, Eq)]
pub enum ToolsShown {
    /// Those to view, write and run.
    Few,
    None,
}

/// The newest session of an agent, abbreviated.
#[wire(PartialEq, Eq)]
pub struct SessionRef {
    pub id: Uuid,
    pub short_id: String,
    pub session_id: String,
    pub saved_at: Timestamp,
    /// Time of the last message of an imported conversation.
    #[omit_empty]
    pub ended_at: Option<Timestamp>,
    pub description: Option<String>,
    pub summary: Option<String>,
    pub message_count: u64,
}

impl SessionRef {
    /// Returns when it was held: when it was saved or, if it was imported, the time of its last message.
    #[must_use]
    pub fn held_at(&self) -> Timestamp {
        self.ended_at.unwrap_or(self.saved_at)
    }
}

/// Usage of an agent's model calls since midnight in the daemon's time zone.
#[wire(PartialEq)]
pub struct TodayUsage {
    /// Input and output tokens.
    pub tokens: u64,
    /// Cost in US dollars of the calls with a known price; null if no price is known.
    pub cost_usd: Option<f64>,
    pub calls: u64,
    /// Calls of unknown price.
    pub unpriced_calls: u64,
}

/// An agent's running turn.
#[wire(Copy, PartialEq, Eq)]
pub struct RunningTurn {
    /// The id for `send.cancel`.
    pub turn_id: Uuid,
    /// Number of the model call, starting at 1; 0 while the message is written to the journal.
    pub step: u32,
    /// How long it has been running.
    pub seconds: u64,
    /// Queued turns.
    pub waiting: u64,
    /// True while it waits because as many turns of the agent run as may (`concurrent_turns`).
    #[omit_empty]
    pub waits_for_slot: bool,
}

/// Why an agent's model would not answer.
#[wire(PartialEq, Eq)]
pub struct Blocked {
    pub reason: String,
    #[omit_empty]
    pub hint: Option<String>,
}

/// An agent.
#[wire(PartialEq)]
pub struct Agent {
    pub id: Uuid,
    pub name: String,
    pub status: AgentStatus,
    pub state: AgentState,
    pub model: Option<String>,
    /// The name of a profile, or the agent's own profile.
    pub permissions: serde_json::Value,
    pub created_at: Timestamp,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    /// The agent's directory.
    pub path: String,
    /// Its workspace, unless that is the directory `workspace` in its own: on a file system that the nodes of a cluster share.
    #[omit_empty]
    pub workspace: Option<String>,
    pub context: Option<ContextInfo>,
    /// Its other conversations that have a live context, by name.
    #[omit_empty]
    pub conversations: Vec<Conversation>,
    /// The clients that have `main` open.
    #[omit_empty]
    pub attached: Vec<Attached>,
    pub last_session: Option<SessionRef>,
    /// Usage since midnight, if it called a model.
    #[omit_empty]
    pub today: Option<TodayUsage>,
    /// The running turn.
    #[omit_empty]
    pub turn: Option<RunningTurn>,
    /// Pending approvals for its actions.
    #[serde(default, skip_serializing_if = "none")]
    pub approvals: u64,
    /// The error in agent.json, while the last valid one is used.
    #[omit_empty]
    pub problem: Option<String>,
    /// The program whose imported conversations it holds. Such an agent is never the implied agent.
    #[omit_empty]
    pub import_source: Option<String>,
    /// The node of the cluster that has it.
    #[omit_empty]
    pub node: Option<String>,
    /// True if that node did not answer: whether it has a live context is not known.
    #[omit_empty]
    pub unreachable: bool,
    /// True if no node of the cluster has it now, as after a move: the next request for it takes it to one. Its live context is
    /// not known.
    #[omit_empty]
    pub unclaimed: bool,
    /// Why its model would not answer now; only in the status of one agent.
    #[omit_empty]
    pub blocked: Option<Blocked>,
}

fn none(count: &u64) -> bool {
    *count == 0
}
