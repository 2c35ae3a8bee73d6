//! The operation `tasks.show`.

use chorus_base::error::Result;
use chorus_proto::methods::tasks::{ShowParams, ShowResult};
use chorus_store::catalog::TaskTable;

use super::{find_task, single_task};
use crate::ops::agent::AgentResolver;

/// Shows one task of any agent.
pub async fn show(agents: &AgentResolver, table: &TaskTable, params: ShowParams) -> Result<ShowResult> {
    Ok(ShowResult { task: single_task(agents, find_task(table, &params.id).await?).await? })
}
