//! The operation `tasks.stop`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{TaskRow, TaskTable};
use chorus_proto::methods::tasks::{StopParams, StopResult};

use super::{find_task, single_task};
use crate::ops::agent::AgentResolver;
use crate::tasks::Tasks;

/// Stops a task and waits until it has ended. Does nothing if it has ended already.
pub async fn stop(
    agents: &AgentResolver,
    table: &Arc<dyn TaskTable>,
    tasks: &Tasks,
    params: StopParams,
) -> Result<StopResult> {
    let TaskRow { id, agent, .. } = find_task(table, &params.id).await?;
    agents.claims.ensure_by_id(agent).await?;
    let stopped = tasks.stop(&id).await;
    Ok(StopResult { task: single_task(agents, find_task(table, &id).await?).await?, stopped })
}
