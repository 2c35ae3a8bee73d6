//! `hello`, `status`, `daemon.stop`: the daemon itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::method;
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloParams {
    /// The protocol number the client speaks; any request may carry it beside its method, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloResult {
    pub protocol: u32,
    /// Always `chorusd`.
    pub server: String,
    pub version: String,
    pub pid: u32,
    pub home: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusParams {
    /// Only this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// At most so many agents: first those with a live context, by name. Without it all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusResult {
    pub daemon: DaemonInfo,
    pub agents: Vec<Agent>,
    pub tasks: TaskCounts,
    pub discord: DiscordInfo,
    pub models: ModelCounts,
    /// Of all agents, where `limit` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<AgentTotals>,
}

/// All agents in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentTotals {
    /// With a live context.
    pub active: u64,
    pub idle: u64,
    /// Approvals that wait for an answer.
    pub approvals: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxInfo>,
}

/// How far commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskCounts {
    pub running: u64,
    pub finished: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiscordInfo {
    pub connected: bool,
    /// The servers that it is in.
    pub guilds: u64,
    /// Older daemons do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DiscordState>,
    /// Why it is not connected; where it is, what does not work all the same: posts that wait, channels that may not be used, servers that are not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When the next try is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How the connection to Discord stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelCounts {
    pub available: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopParams {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopResult {
    pub pid: u32,
}
