//! The operation `tasks.show`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::TaskTable;
use chorus_proto::methods::tasks::{ShowParams, ShowResult};

use super::{find_task, single_task};
use crate::ops::agent::AgentResolver;

/// Shows one task of any agent.
pub async fn show(agents: &AgentResolver, table: &Arc<dyn TaskTable>, params: ShowParams) -> Result<ShowResult> {
    Ok(ShowResult { task: single_task(agents, find_task(table, &params.id).await?).await? })
}
