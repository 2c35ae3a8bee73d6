//! The operation `tasks.list`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::TaskTable;
use chorus_config::Config;
use chorus_proto::methods::tasks::{ListParams, ListResult};

use super::to_tasks;
use crate::ops::agent::AgentResolver;

/// The limit on tasks in a page, and the default.
const MAX_PAGE: u64 = 200;

/// The limit on the bytes of commands in a page; its first task is included in any case.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Lists the tasks of the agent or of all agents: running ones first, then the others, newest first.
pub async fn list(
    agents: &AgentResolver,
    table: &Arc<dyn TaskTable>,
    config: &Config,
    params: ListParams,
) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(MAX_PAGE);
    if limit == 0 {
        return Err(Error::invalid("`limit` must be at least 1").hint("use `offset` for more tasks"));
    }
    let (limit, offset) = (limit.min(MAX_PAGE), params.offset.unwrap_or(0));
    let agent = match params.all_agents {
        true => None,
        false => Some(agents.resolve(params.agent.as_deref()).await?.settings.id),
    };
    let mut rows = table.list(agent, offset, limit + 1).await?;
    let most = MAX_PAGE_BYTES.min(config.max_frame / 8);
    let mut bytes = 0;
    let fit = rows.iter().position(|row| {
        bytes += row.command.len() + 512;
        bytes > most
    });
    let fit = fit.unwrap_or(rows.len()).max(1).min(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = (rows.len() > fit).then(|| offset + fit as u64);
    rows.truncate(fit);
    Ok(ListResult { tasks: to_tasks(agents, rows).await?, next })
}
