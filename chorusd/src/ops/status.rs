//! `hello`, `status`, `daemon.stop`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chorus_proto::PROTOCOL;
use chorus_proto::methods::daemon::{
    DaemonInfo, DiscordInfo, DiscordState, HelloParams, HelloResult, ModelCounts, SandboxInfo, StatusParams,
    StatusResult, StopParams, StopResult, TaskCounts,
};

use super::discord::{State, servers};
use super::{Ops, select, view};
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
    let entries = match &params.agent {
        Some(name) => vec![select::agent(ops, Some(name)).await?],
        None => super::agent::refresh_all(ops, ops.directory.all()).await?,
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
    })
}

/// How the connection to Discord stands.
fn discord(ops: &Ops) -> DiscordInfo {
    let info = |state| DiscordInfo { state: Some(state), ..DiscordInfo::default() };
    match ops.discord.state() {
        State::Off => info(DiscordState::Off),
        State::Connecting => info(DiscordState::Connecting),
        State::Connected => {
            let strangers = ops.discord.strangers();
            let amiss = !strangers.is_empty();
            DiscordInfo {
                connected: true,
                guilds: ops.discord.guilds(),
                why: amiss.then(|| strangers.join("; ")),
                hint: amiss.then(|| servers::HINT.to_owned()),
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
