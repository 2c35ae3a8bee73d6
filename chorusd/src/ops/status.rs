//! `hello`, `status`, `daemon.stop`.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chorus_proto::PROTOCOL;
use chorus_proto::methods::daemon::{
    AgentTotals, DaemonInfo, DiscordInfo, DiscordState, HelloParams, HelloResult, ModelCounts, SandboxInfo,
    StatusParams, StatusResult, StopParams, StopResult, TaskCounts,
};

use super::discord::{State, servers, troubles};
use super::{Ops, select, view};
use crate::agent::directory::Entry;
use crate::failure::Result;

/// How long a status waits for what is found out once.
const SOON: Duration = Duration::from_millis(300);

/// This release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Who is there.
///
/// # Errors
/// None.
pub async fn hello(ops: &Ops, _: HelloParams) -> Result<HelloResult> {
    Ok(HelloResult {
        protocol: PROTOCOL,
        server: "chorusd".into(),
        version: VERSION.into(),
        pid: std::process::id(),
        home: ops.home.to_string_lossy().into_owned(),
    })
}

/// The daemon and its agents.
///
/// # Errors
/// `agent_not_found`, or a database that cannot be read.
pub async fn status(ops: &Ops, params: StatusParams) -> Result<StatusResult> {
    let (entries, totals) = match (&params.agent, params.limit) {
        (Some(name), _) => (vec![select::agent(ops, Some(name)).await?], None),
        (None, None) => (super::agent::refresh_all(ops, ops.directory.all()).await?, None),
        (None, Some(limit)) => {
            let (first, totals) = first(ops, limit);
            (super::agent::refresh_all(ops, first).await?, Some(totals))
        }
    };
    let only = params.agent.as_ref().and_then(|_| entries.first()).map(|entry| entry.facts.id);
    let (running, finished) = ops.registry.world.tasks.counts(only);
    Ok(StatusResult {
        daemon: DaemonInfo {
            version: VERSION.into(),
            pid: std::process::id(),
            started_at: ops.started_at,
            uptime_s: ops.started.elapsed().as_secs(),
            home: ops.home.to_string_lossy().into_owned(),
            socket: ops.socket.get().to_string_lossy().into_owned(),
            protocol: PROTOCOL,
            connections: ops.connections.load(Ordering::Relaxed),
            rss_bytes: rss_bytes(),
            sandbox: sandbox(ops).await,
        },
        agents: view::agents(ops, &entries).await?,
        tasks: TaskCounts { running, finished },
        discord: discord(ops),
        models: ModelCounts { available: ops.models.count() },
        totals,
    })
}

/// The agents that come first where there is room for so many: those with a live context, of these the ones that were
/// active last; then the others. Both by name.
fn first(ops: &Ops, limit: u64) -> (Vec<Arc<Entry>>, AgentTotals) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let live = ops.registry.infos();
    let last_activity = |entry: &Entry| live.get(&entry.facts.id).map(|info| info.last_activity_at);
    let (mut first, idle): (Vec<_>, Vec<_>) =
        ops.directory.all().into_iter().partition(|entry| last_activity(entry).is_some());
    let totals = AgentTotals {
        active: first.len() as u64,
        idle: idle.len() as u64,
        approvals: ops.registry.world.approvals.total(),
    };
    if first.len() > limit {
        first.sort_by_key(|entry| Reverse(last_activity(entry)));
        first.truncate(limit);
        first.sort_by(|one, other| one.facts.name.cmp(&other.facts.name));
    }
    let room = limit - first.len();
    first.extend(idle.into_iter().take(room));
    (first, totals)
}

/// How the connection to Discord stands.
fn discord(ops: &Ops) -> DiscordInfo {
    let info = |state| DiscordInfo { state: Some(state), ..DiscordInfo::default() };
    match ops.discord.state() {
        State::Off => DiscordInfo {
            why: (!ops.config.discord.is_wanted()).then(|| "there is no token".to_owned()),
            ..info(DiscordState::Off)
        },
        State::Connecting => info(DiscordState::Connecting),
        State::Connected => {
            let amiss = [
                (troubles::channels(ops), troubles::CHANNELS),
                (troubles::posts(ops), troubles::POSTS),
                (ops.discord.strangers(), servers::HINT),
            ];
            let amiss: Vec<_> = amiss.into_iter().filter(|(what, _)| !what.is_empty()).collect();
            let all: Vec<String> = amiss.iter().flat_map(|(what, _)| what.iter().cloned()).collect();
            DiscordInfo {
                connected: true,
                guilds: ops.discord.guilds(),
                why: (!all.is_empty()).then(|| all.join("; ")),
                hint: amiss.first().map(|(_, hint)| (*hint).to_owned()),
                ..info(DiscordState::Connected)
            }
        }
        State::Waiting { until, why } => {
            DiscordInfo { why: Some(why), until: Some(until), ..info(DiscordState::Waiting) }
        }
        State::Stopped { why, hint } => DiscordInfo { why: Some(why), hint: Some(hint), ..info(DiscordState::Stopped) },
    }
}

/// How commands are confined, where that is known or soon will be.
async fn sandbox(ops: &Ops) -> Option<SandboxInfo> {
    let level = tokio::time::timeout(SOON, ops.registry.world.sandbox.known()).await.ok()??;
    Some(SandboxInfo {
        way: level.way.as_str().into(),
        landlock: level.landlock,
        seccomp: level.seccomp,
        memory: level.memory.as_str().into(),
        processes: level.processes.as_str().into(),
        missing: level.missing.iter().map(|missing| missing.what.clone()).collect(),
    })
}

/// Asks the daemon to stop.
///
/// # Errors
/// None.
pub async fn stop(ops: &Ops, _: StopParams) -> Result<StopResult> {
    ops.stop.cancel();
    Ok(StopResult { pid: std::process::id() })
}

/// Resident memory of this process; 0 where the system does not tell.
fn rss_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
