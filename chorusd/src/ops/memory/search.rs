//! `memory.search`.

use chorus_proto::methods::memory::{SearchParams, SearchResult};

use super::{PAGE, entries, memory};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select};
use crate::store::catalog::memory::found;

/// What an agent remembers that has all of these words in it. There are few enough to look at each: that finds words in any
/// script, and parts of words, without an index that would hold what was removed.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, or a database that cannot be read.
pub async fn search(ops: &Ops, params: SearchParams) -> Result<SearchResult> {
    if params.query.trim().is_empty() {
        return Err(Failure::invalid("there is nothing to search for").hint("chorusctl memory search WORD"));
    }
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let memory = memory(ops, &agent).await?;
    let mut some = found(memory.rows.clone(), &params.query);
    let total = some.len() as u64;
    some.truncate(params.limit.unwrap_or(PAGE).min(PAGE) as usize);
    Ok(SearchResult { entries: entries(ops, &agent, &memory, some).await?, total })
}
