//! Agents in results: state, live context and usage.

use jiff::Timestamp;
use uuid::Uuid;

use crate::session::TokenPair;
use crate::wire;

/// Whether an agent exists.
#[wire(Copy, PartialEq, Eq)]
pub enum AgentStatus {
    Active,
    Destroyed,
}

/// What an agent is doing: `active` means that it has a live context.
#[wire(Copy, PartialEq, Eq)]
pub enum AgentState {
    Idle,
    Active,
    Destroyed,
}

/// The live context of an agent, in numbers.
#[wire(PartialEq, Eq)]
pub struct ContextInfo {
    pub messages: u64,
    pub token_estimate: u64,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    /// When the context is put away unless something happens; null: never.
    pub idle_deadline_at: Option<Timestamp>,
    pub parent_id: Option<Uuid>,
    /// Messages that no session holds yet.
    pub unsaved: u64,
    /// What resuming cost, apart from the conversation; absent where it cost nothing.
    #[serde(default, skip_serializing_if = "TokenPair::is_zero")]
    pub restoration_tokens: TokenPair,
    /// Where the agent has a model.
    #[omit_empty]
    pub meter: Option<Meter>,
}

/// How full the window of a model would be with the next request: prompt, notes, working set, tools and the messages that
/// are shown.
#[wire(Copy, PartialEq, Eq)]
pub struct Meter {
    /// Tokens, estimated.
    pub used: u64,
    /// Tokens that the model takes, the answer included; null where that is not known.
    pub window: Option<u64>,
    /// Whether the estimate is corrected by what the provider counted before.
    pub calibrated: bool,
    /// Which tools the model is shown, where its window has no room for all that the agent may use.
    #[omit_empty]
    pub tools: Option<ToolsShown>,
}

/// Which tools a model is shown whose window is small.
#[wire(Copy, PartialEq, Eq)]
pub enum ToolsShown {
    /// Those to look, write and run.
    Few,
    None,
}

/// The newest session of an agent, in short.
#[wire(PartialEq, Eq)]
pub struct SessionRef {
    pub id: Uuid,
    pub short_id: String,
    pub session_id: String,
    pub saved_at: Timestamp,
    pub description: Option<String>,
    pub summary: Option<String>,
    pub message_count: u64,
}

/// What an agent's calls of models used since midnight, where the daemon runs.
#[wire(PartialEq)]
pub struct TodayUsage {
    /// In and out.
    pub tokens: u64,
    /// US dollars, of the calls whose price is known; null where none is.
    pub cost_usd: Option<f64>,
    pub calls: u64,
    /// Calls whose price is not known.
    pub unpriced_calls: u64,
}

/// The turn of an agent that runs.
#[wire(Copy, PartialEq, Eq)]
pub struct RunningTurn {
    /// What `send.cancel` ends it by.
    pub turn_id: Uuid,
    /// Number of the call of the model, from 1; 0: the message is on its way into the journal.
    pub step: u32,
    /// How long it has run.
    pub seconds: u64,
    /// Turns that wait for it.
    pub waiting: u64,
}

/// An agent.
#[wire(PartialEq)]
pub struct Agent {
    pub id: Uuid,
    pub name: String,
    pub status: AgentStatus,
    pub state: AgentState,
    pub model: Option<String>,
    /// The name of a profile, or a profile of its own.
    pub permissions: serde_json::Value,
    pub created_at: Timestamp,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    /// The agent's directory.
    pub path: String,
    pub context: Option<ContextInfo>,
    pub last_session: Option<SessionRef>,
    /// What it used today, where it called a model.
    #[omit_empty]
    pub today: Option<TodayUsage>,
    /// The turn that runs.
    #[omit_empty]
    pub turn: Option<RunningTurn>,
    /// Actions of it that wait for an answer.
    #[serde(default, skip_serializing_if = "none")]
    pub approvals: u64,
    /// What is wrong with agent.json, while the last good one stays in force.
    #[omit_empty]
    pub problem: Option<String>,
    /// The program whose imported conversations it holds. Such an agent is never the implied one.
    #[omit_empty]
    pub import_source: Option<String>,
}

fn none(count: &u64) -> bool {
    *count == 0
}
