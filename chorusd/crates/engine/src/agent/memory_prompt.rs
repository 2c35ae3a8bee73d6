//! The memory block of agents' prompts.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::window::{MAX_SHOWN_MEMORIES, MemoryBlock, RememberedEntry, build_memory_block};
use chorus_base::error::Result;
use chorus_catalog::{MemoryRow, MemoryScope, MemoryTable};

/// Returns whose memory the agent's prompt has.
#[must_use]
pub fn memory_scope(settings: &AgentSettings) -> MemoryScope {
    MemoryScope { agent: settings.id, project: settings.project.clone() }
}

/// Returns the memory block of each agent, in the given order, or `None` for one that remembers nothing.
pub async fn load_memory_blocks(
    memories: &Arc<dyn MemoryTable>,
    agents: Vec<MemoryScope>,
) -> Result<Vec<Option<String>>> {
    let ids: Vec<_> = agents.iter().map(|whose| whose.agent).collect();
    // One more than are shown, so that the first of the others can be named.
    let all = memories.first_visible(agents, MAX_SHOWN_MEMORIES + 1).await?;
    Ok(ids.into_iter().zip(all).map(|(agent, (rows, total))| memory_block(agent, &rows, total).text).collect())
}

/// Builds the memory block of `agent` from the first `rows` of `total`.
#[must_use]
pub fn memory_block(agent: uuid::Uuid, rows: &[MemoryRow], total: u64) -> MemoryBlock {
    let entry = |row: &MemoryRow| RememberedEntry {
        text: row.text.clone(),
        path: row.path.clone(),
        shared_by: (row.project.is_some() && row.agent != agent).then(|| row.agent_name.clone()),
    };
    build_memory_block(&rows.iter().map(entry).collect::<Vec<_>>(), total)
}
