//! `tasks.*`, and the daemon's side of background tasks.

pub mod list;
pub mod logs;
pub mod running_tasks_sync;
pub mod show;
pub mod stop;
mod task_host;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{TaskRow, TaskTable};
use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::Task;
use uuid::Uuid;

use super::agent::AgentResolver;
pub use running_tasks_sync::RunningTasksSync;

/// Finds the task with this id.
async fn find_task(table: &Arc<dyn TaskTable>, id: &str) -> Result<TaskRow> {
    let row = table.get(id.to_owned()).await?;
    let shown: String = id.chars().take(40).collect();
    row.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("no task {shown:?}"))
            .hint("list tasks: chorusctl tasks list --all-agents")
    })
}

/// Converts rows into tasks with the current names of their agents and the current paths of their logs.
async fn to_tasks(agents: &AgentResolver, rows: Vec<TaskRow>) -> Result<Vec<Task>> {
    let mut places: HashMap<Uuid, (String, PathBuf)> = HashMap::new();
    let mut gone = Vec::new();
    for row in &rows {
        match agents.index.by_id(row.agent) {
            Some(entry) => _ = places.insert(row.agent, (entry.settings.name.clone(), entry.settings.dir.clone())),
            None if !gone.contains(&row.agent) => gone.push(row.agent),
            None => {}
        }
    }
    if !gone.is_empty() {
        for agent in agents.table.list_by_id(gone).await? {
            places.insert(agent.id, (agent.name, agents.home.join(agent.dir)));
        }
    }
    Ok(rows.into_iter().map(|row| to_task(row, &places)).collect())
}

fn to_task(row: TaskRow, places: &HashMap<Uuid, (String, PathBuf)>) -> Task {
    let (agent, dir) = match places.get(&row.agent) {
        Some((name, dir)) => (name.clone(), dir.clone()),
        None => (row.agent_name, PathBuf::new()),
    };
    Task {
        id: row.id,
        agent,
        command: row.command,
        pid: row.pid,
        status: row.status,
        exit_code: row.exit_code,
        signal: row.signal,
        started_at: row.started_at,
        ended_at: row.ended_at,
        log_path: dir.join(row.log_path).to_string_lossy().into_owned(),
    }
}

/// Converts one row as [`to_tasks`] does.
async fn single_task(agents: &AgentResolver, row: TaskRow) -> Result<Task> {
    to_tasks(agents, vec![row]).await?.pop().ok_or_else(|| Error::internal("a task listing was aborted"))
}
