//! The operation `memory.list`.

use std::sync::Arc;

use chorus_agent_core::window::MAX_MEMORY_TOKENS;
use chorus_base::error::Result;
use chorus_catalog::{MemoryTable, SessionTable};
use chorus_proto::methods::memory::{ListParams, ListResult};

use super::{MAX_PAGE, load_memory, to_entries};
use crate::ops::agent::AgentResolver;

/// Lists a page of an agent's memories in the order in which its model sees them.
pub async fn list(
    agents: &AgentResolver,
    memories: &Arc<dyn MemoryTable>,
    sessions: &Arc<dyn SessionTable>,
    params: ListParams,
) -> Result<ListResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let memory = load_memory(memories, &agent).await?;
    let total = memory.rows.len();
    let offset = usize::try_from(params.offset.unwrap_or(0)).unwrap_or(usize::MAX).min(total);
    let limit = params.limit.unwrap_or(MAX_PAGE).min(MAX_PAGE) as usize;
    let some = memory.rows[offset..].iter().take(limit).cloned().collect();
    let entries = to_entries(sessions, &agent, &memory, some).await?;
    let end = offset + entries.len();
    let next = (end < total && end > offset).then_some(end as u64);
    let (shown, tokens) = (memory.block.shown as u64, memory.block.tokens);
    Ok(ListResult { entries, total: total as u64, shown, tokens, token_budget: MAX_MEMORY_TOKENS, next })
}
