//! `hello`, `status`, `daemon.stop`: the daemon itself.

use jiff::Timestamp;

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
    /// The protocol number the client speaks; any request may carry it beside its method, too.
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
    /// At most so many agents: first those with a live context, by name. Without it all of them.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct StatusResult {
    pub daemon: DaemonInfo,
    pub agents: Vec<Agent>,
    pub tasks: TaskCounts,
    pub discord: DiscordInfo,
    pub models: ModelCounts,
    /// Of all agents, where `limit` was given.
    #[omit_empty]
    pub totals: Option<AgentTotals>,
}

/// All agents in numbers.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct AgentTotals {
    /// With a live context.
    pub active: u64,
    pub idle: u64,
    /// Approvals that wait for an answer.
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
    /// How commands of agents are confined; absent until it is known, a moment after it was first asked for.
    #[omit_empty]
    pub sandbox: Option<SandboxInfo>,
}

/// How far commands are confined.
#[wire(PartialEq, Eq)]
pub struct SandboxInfo {
    /// `bubblewrap`, `namespaces` or `none`. With `none` every command is asked about.
    pub way: String,
    /// The version of Landlock's interface; null where the kernel has none.
    pub landlock: Option<u32>,
    /// System calls that no build needs are refused.
    pub seccomp: bool,
    /// `cgroup` or `watch`: of a command as a whole; `rlimit`: of each of its processes.
    pub memory: String,
    /// What bounds their number: `namespace`, `cgroup` or `rlimit`; `none` where nothing does.
    pub processes: String,
    /// What is not there, in words; empty where nothing is missing.
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
    /// The servers that it is in.
    pub guilds: u64,
    /// Older daemons do not tell.
    #[omit_empty]
    pub state: Option<DiscordState>,
    /// Why it is not connected; where it is, what does not work all the same: posts that wait, channels that may not be used, servers that are not served.
    #[omit_empty]
    pub why: Option<String>,
    /// What a person can do about it.
    #[omit_empty]
    pub hint: Option<String>,
    /// When the next try is.
    #[omit_empty]
    pub until: Option<Timestamp>,
}

/// How the connection to Discord stands.
#[wire(Copy, PartialEq, Eq)]
pub enum DiscordState {
    /// There is no token.
    Off,
    Connecting,
    Connected,
    /// It tries again at `until`.
    Waiting,
    /// It does not try again before a restart.
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
