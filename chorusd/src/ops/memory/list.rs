//! `memory.list`.

use chorus_proto::methods::memory::{ListParams, ListResult};

use super::{PAGE, entries, memory};
use crate::agent::window::REMEMBERED_TOKENS;
use crate::failure::Result;
use crate::ops::{Ops, select};

/// A page of what an agent remembers, in the order in which its model is shown it.
///
/// # Errors
/// `agent_not_found`, or a database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let memory = memory(ops, &agent).await?;
    let total = memory.rows.len();
    let offset = usize::try_from(params.offset.unwrap_or(0)).unwrap_or(usize::MAX).min(total);
    let limit = params.limit.unwrap_or(PAGE).min(PAGE) as usize;
    let some = memory.rows[offset..].iter().take(limit).cloned().collect();
    let entries = entries(ops, &agent, &memory, some).await?;
    let end = offset + entries.len();
    let next = (end < total && end > offset).then_some(end as u64);
    let (shown, tokens) = (memory.shown.shown as u64, memory.shown.tokens);
    Ok(ListResult { entries, total: total as u64, shown, tokens, token_budget: REMEMBERED_TOKENS, next })
}
