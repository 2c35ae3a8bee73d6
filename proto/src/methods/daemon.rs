//! `hello`, `status`, `daemon.stop`: the daemon itself.

use jiff::Timestamp;

use super::search::{EmbeddingModel, SearchIndexState};
use super::{method, wire};
use crate::agent::Agent;

method!(
    /// Identifies the daemon. Optional: any method may be called first.
    Hello = "hello", HelloParams => HelloResult
);
method!(
    /// Reports the state of the daemon and its agents.
    Status = "status", StatusParams => StatusResult
);
method!(
    /// Stops the daemon after saving every unsaved context.
    Stop = "daemon.stop", StopParams => StopResult
);

#[wire(params)]
pub struct HelloParams {
    /// The client's protocol version; every request can also have it beside its method.
    pub protocol: Option<u32>,
}

#[wire(PartialEq)]
pub struct HelloResult {
    pub protocol: u32,
    /// Always `chorusd`.
    pub server: String,
    pub version: String,
    pub pid: u32,
    pub home: String,
}

#[wire(params)]
pub struct StatusParams {
    /// Only this agent.
    pub agent: Option<String>,
    /// Maximum number of agents: first those with a live context (the most recently active ones, if there are too many),
    /// then the others, both by name. By default all.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct StatusResult {
    pub daemon: DaemonInfo,
    pub agents: Vec<Agent>,
    pub tasks: TaskCounts,
    pub discord: DiscordInfo,
    pub models: ModelCounts,
    /// The search index; null if it cannot be used.
    #[omit_empty]
    pub search: Option<SearchIndexState>,
    /// The model by which messages are found by meaning, if one is chosen.
    #[omit_empty]
    pub search_model: Option<EmbeddingModel>,
    /// The MCP servers of the configuration.
    #[omit_empty]
    pub mcp: Vec<McpServerInfo>,
    /// Counts of all agents, if `limit` was given.
    #[omit_empty]
    pub totals: Option<AgentTotals>,
}

/// An MCP server whose tools agents may use.
#[wire(PartialEq, Eq)]
pub struct McpServerInfo {
    pub name: String,
    pub state: McpServerState,
    /// Tools that it offers, or last offered.
    pub tools: u64,
    /// Why it does not run.
    #[omit_empty]
    pub error: Option<String>,
}

/// The state of an MCP server.
#[wire(Copy, PartialEq, Eq)]
pub enum McpServerState {
    /// No agent has needed it yet.
    Idle,
    Starting,
    Running,
    /// It could not be started, or has ended. It is tried again.
    Failed,
    Stopped,
}

/// Counts of all agents.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct AgentTotals {
    /// Agents with a live context.
    pub active: u64,
    pub idle: u64,
    /// Pending approvals.
    pub approvals: u64,
}

#[wire(PartialEq)]
pub struct DaemonInfo {
    pub version: String,
    pub pid: u32,
    pub started_at: Timestamp,
    pub uptime_s: u64,
    pub home: String,
    pub socket: String,
    pub protocol: u32,
    pub connections: u64,
    pub rss_bytes: u64,
    /// The sandbox of agents' commands; missing until it is known, a moment after the first request.
    #[omit_empty]
    pub sandbox: Option<SandboxInfo>,
}

/// The sandbox of commands.
#[wire(PartialEq, Eq)]
pub struct SandboxInfo {
    /// `bubblewrap`, `namespaces` or `none`. With `none` every command needs approval.
    pub way: String,
    /// The Landlock ABI version; null if the kernel does not have Landlock.
    pub landlock: Option<u32>,
    /// True if system calls are filtered.
    pub seccomp: bool,
    /// Limit of memory: `cgroup` or `watch` per command, `rlimit` per process.
    pub memory: String,
    /// Limit of the number of processes: `namespace`, `cgroup`, `rlimit` or `none`.
    pub processes: String,
    /// Descriptions of what is missing; empty if nothing is.
    pub missing: Vec<String>,
}

#[wire(Default, PartialEq, Eq)]
pub struct TaskCounts {
    pub running: u64,
    pub finished: u64,
}

#[wire(Default, PartialEq, Eq)]
pub struct DiscordInfo {
    pub connected: bool,
    /// The number of servers that it is in.
    pub guilds: u64,
    /// Missing from older daemons.
    #[omit_empty]
    pub state: Option<DiscordState>,
    /// Why it is not connected; if it is connected, what does not work: pending posts, channels that cannot be used,
    /// servers that are not served.
    #[omit_empty]
    pub why: Option<String>,
    /// Hint for a person to fix it.
    #[omit_empty]
    pub hint: Option<String>,
    /// Time of the next attempt.
    #[omit_empty]
    pub until: Option<Timestamp>,
}

/// State of the connection to Discord.
#[wire(Copy, PartialEq, Eq)]
pub enum DiscordState {
    /// No token is configured.
    Off,
    Connecting,
    Connected,
    /// It retries at `until`.
    Waiting,
    /// It does not retry until the daemon restarts.
    Stopped,
}

#[wire(Default, PartialEq, Eq)]
pub struct ModelCounts {
    pub available: u64,
}

#[wire(params)]
pub struct StopParams {}

#[wire(PartialEq, Eq)]
pub struct StopResult {
    pub pid: u32,
}
