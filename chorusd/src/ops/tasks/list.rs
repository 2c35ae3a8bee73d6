//! `tasks.list`.

use chorus_proto::methods::tasks::{ListParams, ListResult};

use super::shown;
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select};

/// Most tasks a page, and how many unless said otherwise.
const PAGE: u64 = 200;

/// Bytes of commands in a page; one more than fits is begun with.
const BYTES: usize = 2 << 20;

/// Tasks of the agent, or of all: those that run, then the others, the newest first.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `no_agent`, or a database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(PAGE);
    if limit == 0 {
        return Err(Failure::invalid("`limit` is 1 or more").hint("more tasks follow with `offset`"));
    }
    let (limit, offset) = (limit.min(PAGE), params.offset.unwrap_or(0));
    let agent = match params.all_agents {
        true => None,
        false => Some(select::agent(ops, params.agent.as_deref()).await?.facts.id),
    };
    let mut rows = ops.store.catalog.tasks(agent, offset, limit + 1).await?;
    let most = BYTES.min(ops.config.max_frame / 8);
    let mut bytes = 0;
    let fit = rows.iter().position(|row| {
        bytes += row.command.len() + 512;
        bytes > most
    });
    let fit = fit.unwrap_or(rows.len()).max(1).min(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = (rows.len() > fit).then(|| offset + fit as u64);
    rows.truncate(fit);
    Ok(ListResult { tasks: shown(ops, rows).await?, next })
}
