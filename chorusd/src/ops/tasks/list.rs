//! `tasks.list`.

use chorus_proto::methods::tasks::{ListParams, ListResult};

use super::to_tasks;
use crate::error::{Error, Result};
use crate::ops::{Ops, resolve};

/// Most tasks a page, and how many unless said otherwise.
const MAX_PAGE: u64 = 200;

/// Bytes of commands in a page; one more than fits is begun with.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Tasks of the agent, or of all: those that run, then the others, the newest first.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `no_agent`, or a database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(MAX_PAGE);
    if limit == 0 {
        return Err(Error::invalid("`limit` is 1 or more").hint("more tasks follow with `offset`"));
    }
    let (limit, offset) = (limit.min(MAX_PAGE), params.offset.unwrap_or(0));
    let agent = match params.all_agents {
        true => None,
        false => Some(resolve::agent(ops, params.agent.as_deref()).await?.settings.id),
    };
    let mut rows = ops.store.catalog.tasks(agent, offset, limit + 1).await?;
    let most = MAX_PAGE_BYTES.min(ops.config.max_frame / 8);
    let mut bytes = 0;
    let fit = rows.iter().position(|row| {
        bytes += row.command.len() + 512;
        bytes > most
    });
    let fit = fit.unwrap_or(rows.len()).max(1).min(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = (rows.len() > fit).then(|| offset + fit as u64);
    rows.truncate(fit);
    Ok(ListResult { tasks: to_tasks(ops, rows).await?, next })
}
