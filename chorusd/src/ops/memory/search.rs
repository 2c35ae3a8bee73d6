//! `memory.search`.

use chorus_proto::methods::memory::{SearchParams, SearchResult};

use super::{MAX_PAGE, load_memory, to_entries};
use crate::error::{Error, Result};
use crate::ops::{Ops, resolve};
use crate::store::catalog::memories;

/// What an agent remembers that has all of these words in it. There are few enough to look at each: that finds words in any
/// script, and parts of words, without an index that would hold what was removed.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, or a database that cannot be read.
pub async fn search(ops: &Ops, params: SearchParams) -> Result<SearchResult> {
    if params.query.trim().is_empty() {
        return Err(Error::invalid("there is nothing to search for").hint("chorusctl memory search WORD"));
    }
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    let memory = load_memory(ops, &agent).await?;
    let mut some = memories::search(memory.rows.clone(), &params.query);
    let total = some.len() as u64;
    some.truncate(params.limit.unwrap_or(MAX_PAGE).min(MAX_PAGE) as usize);
    Ok(SearchResult { entries: to_entries(ops, &agent, &memory, some).await?, total })
}
