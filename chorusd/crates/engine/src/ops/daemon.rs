//! `hello`, `status`, `daemon.stop`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chorus_base::error::Result;
use chorus_mcp_client::{ServerState, ServerStatus};
use chorus_proto::methods::daemon::{
    AgentTotals, DaemonInfo, DiscordInfo, DiscordState, HelloParams, HelloResult, McpServerInfo, McpServerState,
    ModelCounts, SandboxInfo, StatusParams, StatusResult, StopParams, StopResult, TaskCounts,
};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Agent, Blocked, PROTOCOL};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Ops;
use super::discord::{ConnectionState, connected_elsewhere, delivery_problems, guild_allowlist};
use super::send::ensure_can_begin;
use crate::agent::agent_index::AgentEntry;
use crate::lifecycle::socket::SocketPath;

/// The time that a status waits for the probe of the sandbox, which happens once.
const SANDBOX_PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// The version of this release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The state of the daemon as a whole.
#[derive(Debug)]
pub struct DaemonState {
    pub socket: SocketPath,
    pub started_at: Timestamp,
    pub started: Instant,
    /// The number of open connections.
    pub connections: AtomicU64,
    /// Cancel it to stop the daemon.
    pub stop: CancellationToken,
}

/// Identifies the daemon.
pub async fn hello(home: &Path, _: HelloParams) -> Result<HelloResult> {
    Ok(HelloResult {
        protocol: PROTOCOL,
        server: "chorusd".into(),
        version: VERSION.into(),
        pid: std::process::id(),
        home: home.to_string_lossy().into_owned(),
    })
}

/// Reports the state of the daemon and its agents.
pub async fn status(ops: &Ops, params: StatusParams) -> Result<StatusResult> {
    let (entries, totals) = match (&params.agent, params.limit) {
        (Some(name), _) => (vec![ops.agent_resolver.resolve(Some(name)).await?], None),
        (None, None) => (ops.agent_resolver.all().await?, None),
        (None, Some(limit)) => {
            let (first, totals) = select_first(ops, ops.agent_resolver.all_as_known().await?, limit);
            (ops.agent_resolver.reload_all(first).await?, Some(totals))
        }
    };
    let only = params.agent.as_ref().and_then(|_| entries.first()).map(|entry| entry.settings.id);
    let (running, finished) = ops.tasks.counts(only);
    let mut agents = ops.agent_describer.describe_all(&entries).await?;
    if let (Some(_), [entry], [agent]) = (only, &entries[..], &mut agents[..]) {
        agent.blocked = find_blocker(ops, entry, agent).await;
    }
    Ok(StatusResult {
        daemon: DaemonInfo {
            version: VERSION.into(),
            pid: std::process::id(),
            started_at: ops.daemon.started_at,
            uptime_s: ops.daemon.started.elapsed().as_secs(),
            home: ops.home.to_string_lossy().into_owned(),
            socket: ops.daemon.socket.get().to_string_lossy().into_owned(),
            protocol: PROTOCOL,
            connections: ops.daemon.connections.load(Ordering::Relaxed),
            rss_bytes: rss_bytes(),
            sandbox: sandbox_info(ops).await,
        },
        agents,
        tasks: TaskCounts { running, finished },
        discord: discord_info(ops),
        models: ModelCounts { available: ops.models.model_count() },
        search: ops.search.progress(),
        search_model: ops.semantic.describe(),
        mcp: ops.mcp.statuses().into_iter().map(server_info).collect(),
        totals,
    })
}

fn server_info(server: ServerStatus) -> McpServerInfo {
    let (state, error) = match server.state {
        ServerState::Idle => (McpServerState::Idle, None),
        ServerState::Starting => (McpServerState::Starting, None),
        ServerState::Running => (McpServerState::Running, None),
        ServerState::Failed { why, .. } => (McpServerState::Failed, Some(why)),
        ServerState::Stopped => (McpServerState::Stopped, None),
    };
    McpServerInfo { name: server.name, state, tools: server.tools as u64, error }
}

/// Returns why an agent's model would not answer a message now; `None` if nothing is in the way.
async fn find_blocker(ops: &Ops, entry: &AgentEntry, agent: &Agent) -> Option<Blocked> {
    let blocked = |reason: String, hint: Option<String>| Some(Blocked { reason, hint });
    if let Err(failure) = ensure_can_begin(&ops.models, &ops.usage, &entry.settings, &[]).await {
        return blocked(failure.message, failure.hint);
    }
    // Those of other conversations keep no message from `main`, whose turn this is about.
    let open = ops.approvals.open_approvals(Some(entry.settings.id));
    let approvals = open.iter().filter(|approval| approval.conversation.is_none()).count();
    if approvals > 0 {
        let what = if approvals == 1 { "an approval".to_owned() } else { format!("{approvals} approvals") };
        return blocked(format!("the running turn waits for {what}"), Some("list them: chorusctl approvals".into()));
    }
    let turn = agent.turn.as_ref().filter(|turn| turn.waiting > 0)?;
    let name = &agent.name;
    let verb = if turn.waiting == 1 { "waits" } else { "wait" };
    let reason = format!("{} {verb} for the running turn", pluralize(turn.waiting, "message"));
    blocked(reason, Some(format!("cancel the turn: chorusctl cancel {name}")))
}

/// Selects at most `limit` of all agents for a short status: first those with a live context, the most recently active ones if
/// there are too many; then the others. Both groups are sorted by name.
fn select_first(ops: &Ops, all: Vec<Arc<AgentEntry>>, limit: u64) -> (Vec<Arc<AgentEntry>>, AgentTotals) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let live = ops.registry.context_infos();
    let mut latest = HashMap::new();
    for (conversation, info) in &live {
        let at = latest.entry(conversation.agent).or_insert(info.last_activity_at);
        *at = info.last_activity_at.max(*at);
    }
    let last_activity = |entry: &AgentEntry| latest.get(&entry.settings.id).copied();
    let (mut first, idle): (Vec<_>, Vec<_>) = all.into_iter().partition(|entry| last_activity(entry).is_some());
    let totals =
        AgentTotals { active: first.len() as u64, idle: idle.len() as u64, approvals: ops.approvals.count_all_open() };
    if first.len() > limit {
        first.sort_by_key(|entry| Reverse(last_activity(entry)));
        first.truncate(limit);
        first.sort_by(|one, other| one.settings.name.cmp(&other.settings.name));
    }
    let remaining = limit - first.len();
    first.extend(idle.into_iter().take(remaining));
    (first, totals)
}

/// Reports the state of the Discord connection.
fn discord_info(ops: &Ops) -> DiscordInfo {
    let info = |state| DiscordInfo { state: Some(state), ..DiscordInfo::default() };
    match ops.discord.state() {
        ConnectionState::Off => DiscordInfo {
            why: (!ops.config.discord.is_configured()).then(|| "no token configured".to_owned()),
            ..info(DiscordState::Off)
        },
        ConnectionState::Connecting => info(DiscordState::Connecting),
        ConnectionState::Connected => {
            let amiss = [
                (delivery_problems::unusable_channels(ops), delivery_problems::UNUSABLE_CHANNELS_HINT),
                (delivery_problems::blocked_posts(ops), delivery_problems::BLOCKED_POSTS_HINT),
                (ops.discord.unserved_guilds(), guild_allowlist::UNSERVED_HINT),
            ];
            let amiss: Vec<_> = amiss.into_iter().filter(|(what, _)| !what.is_empty()).collect();
            let all: Vec<String> = amiss.iter().flat_map(|(what, _)| what.iter().cloned()).collect();
            DiscordInfo {
                connected: true,
                guilds: ops.discord.guild_count(),
                why: (!all.is_empty()).then(|| all.join("; ")),
                hint: amiss.first().map(|(_, hint)| (*hint).to_owned()),
                ..info(DiscordState::Connected)
            }
        }
        ConnectionState::Elsewhere { node } => {
            DiscordInfo { why: Some(connected_elsewhere(&node)), ..info(DiscordState::Waiting) }
        }
        ConnectionState::Waiting { until, why } => {
            DiscordInfo { why: Some(why), until: Some(until), ..info(DiscordState::Waiting) }
        }
        ConnectionState::Stopped { why, hint } => {
            DiscordInfo { why: Some(why), hint: Some(hint), ..info(DiscordState::Stopped) }
        }
    }
}

/// Reports how commands are confined; `None` if the probe does not end in time. It continues, for the next status.
async fn sandbox_info(ops: &Ops) -> Option<SandboxInfo> {
    let level = if let Some(level) = ops.sandbox.level() {
        level.clone()
    } else {
        let sandbox = ops.sandbox.clone();
        let probe = chorus_runtime::spawn(async move { sandbox.level_or_probe().await.cloned() });
        tokio::time::timeout(SANDBOX_PROBE_TIMEOUT, probe).await.ok()?.ok()??
    };
    Some(SandboxInfo {
        way: level.isolation.as_str().into(),
        landlock: level.landlock,
        seccomp: level.seccomp,
        memory: level.memory.as_str().into(),
        processes: level.processes.as_str().into(),
        missing: level.missing.iter().map(|missing| missing.description.clone()).collect(),
    })
}

/// Stops the daemon.
pub async fn stop(daemon: &DaemonState, _: StopParams) -> Result<StopResult> {
    daemon.stop.cancel();
    Ok(StopResult { pid: std::process::id() })
}

/// Returns the resident memory of this process in bytes; 0 if the system does not tell.
fn rss_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
