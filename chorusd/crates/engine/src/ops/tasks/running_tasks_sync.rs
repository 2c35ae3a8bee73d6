//! Keeps `running_tasks` of agent.json up to date in the background. Starting a task must not wait for the agents lock,
//! because its holder may be waiting for that turn to end.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_config::agent::AgentConfig;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ops::Ops;

/// Agents whose `running_tasks` in agent.json may be outdated.
#[derive(Debug, Default)]
pub struct RunningTasksSync {
    changed: Mutex<HashSet<Uuid>>,
    notify: Notify,
}

impl RunningTasksSync {
    /// Records that the running tasks of this agent have changed.
    pub fn mark_changed(&self, agent: Uuid) {
        self.changed.lock().insert(agent);
        self.notify.notify_one();
    }
}

/// Syncs changed agents until the daemon stops.
pub async fn run(ops: Arc<Ops>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = ops.running_tasks_sync.notify.notified() => sync_changed(&ops).await,
            () = stop.cancelled() => return,
        }
    }
}

/// Syncs agent.json of all changed agents.
pub async fn sync_changed(ops: &Ops) {
    let due = std::mem::take(&mut *ops.running_tasks_sync.changed.lock());
    for agent in due {
        if let Err(failure) = sync_agent(ops, agent).await {
            tracing::warn!(%agent, %failure, "cannot list the running tasks in agent.json");
        }
    }
}

async fn sync_agent(ops: &Ops, agent: Uuid) -> Result<()> {
    let _one_at_a_time = ops.agent_resolver.lock.lock().await;
    let Some(entry) = ops.agents.by_id(agent) else { return Ok(()) };
    let entry = ops.agent_resolver.reload_locked(entry).await?;
    if let Some(problem) = &entry.config_problem {
        tracing::debug!(agent = %entry.settings.name, problem, "agent.json is unchanged");
        return Ok(());
    }
    ops.agent_editor.write_running_tasks(&entry, ops.tasks.running_of(agent)).await
}

/// Marks the agents whose agent.json lists tasks of an earlier daemon.
pub async fn mark_outdated(ops: &Ops) -> Result<()> {
    for row in ops.store.catalog.agents.list(false).await? {
        // Most agents have no such key, and for most of the others it is empty.
        if !row.config.contains("\"running_tasks\"") {
            continue;
        }
        let lists = AgentConfig::parse(&row.config, &ops.defaults())
            .is_ok_and(|config| config.map()["running_tasks"].as_array().is_some_and(|list| !list.is_empty()));
        if lists {
            ops.running_tasks_sync.mark_changed(row.id);
        }
    }
    Ok(())
}
