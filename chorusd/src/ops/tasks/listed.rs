//! Keeping `running_tasks` of agent.json. It follows what runs, and nobody waits for it: whoever starts a task must not wait
//! for the lock on agents, which somebody may hold who waits for that very turn to end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::agent::AgentConfig;
use crate::failure::Result;
use crate::ops::Ops;
use crate::ops::agent::config::list_running;
use crate::ops::agent::refresh_alone;

/// Agents whose agent.json may list what no longer runs, or not list what does.
#[derive(Debug, Default)]
pub struct Listed {
    due: Mutex<HashSet<Uuid>>,
    added: Notify,
}

impl Listed {
    /// What runs of this agent has changed.
    pub fn mark(&self, agent: Uuid) {
        self.due().insert(agent);
        self.added.notify_one();
    }

    fn due(&self) -> std::sync::MutexGuard<'_, HashSet<Uuid>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps every agent.json true until the daemon stops.
pub async fn keep(ops: Arc<Ops>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = ops.listed.added.notified() => settle(&ops).await,
            () = stop.cancelled() => return,
        }
    }
}

/// Brings every agent.json that is due up to what runs.
pub async fn settle(ops: &Ops) {
    let due = std::mem::take(&mut *ops.listed.due());
    for agent in due {
        if let Err(failure) = one(ops, agent).await {
            tracing::warn!(%agent, %failure, "agent.json does not list what the agent has running");
        }
    }
}

async fn one(ops: &Ops, agent: Uuid) -> Result<()> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    let Some(entry) = ops.directory.by_id(agent) else { return Ok(()) };
    let entry = refresh_alone(ops, entry).await?;
    if let Some(problem) = &entry.problem {
        tracing::debug!(agent = %entry.facts.name, problem, "agent.json is left as it is");
        return Ok(());
    }
    list_running(ops, &entry, ops.registry.world.tasks.running_of(agent)).await
}

/// Marks the agents whose agent.json lists tasks of a daemon that ended.
///
/// # Errors
/// A database that cannot be read.
pub async fn look_over(ops: &Ops) -> Result<()> {
    for row in ops.store.catalog.agents(false).await? {
        // Most have none, and most that have one have it empty.
        if !row.config.contains("\"running_tasks\"") {
            continue;
        }
        let lists = AgentConfig::parse(&row.config, &ops.config)
            .is_ok_and(|config| config.map()["running_tasks"].as_array().is_some_and(|list| !list.is_empty()));
        if lists {
            ops.listed.mark(row.id);
        }
    }
    Ok(())
}
