//! The operation `memory.search`.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::memory::{SearchParams, SearchResult};
use chorus_store::catalog::{MemoryTable, SessionTable, memories};

use super::{MAX_PAGE, load_memory, to_entries};
use crate::ops::agent::AgentResolver;

/// Finds the memories that contain all words of the query. They are few enough to scan, which finds words in any
/// script, and parts of words, without an index that would keep removed texts.
pub async fn search(
    agents: &AgentResolver,
    table: &MemoryTable,
    sessions: &SessionTable,
    params: SearchParams,
) -> Result<SearchResult> {
    if params.query.trim().is_empty() {
        return Err(Error::invalid("nothing to search for").hint("chorusctl memory search WORD"));
    }
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let memory = load_memory(table, &agent).await?;
    let mut some = memories::search(memory.rows.clone(), &params.query);
    let total = some.len() as u64;
    some.truncate(params.limit.unwrap_or(MAX_PAGE).min(MAX_PAGE) as usize);
    Ok(SearchResult { entries: to_entries(sessions, &agent, &memory, some).await?, total })
}
