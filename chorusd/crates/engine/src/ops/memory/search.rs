//! The operation `memory.search`.

use std::cmp::Reverse;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{MemoryRow, MemoryTable, SessionTable};
use chorus_proto::methods::memory::{SearchParams, SearchResult};
use chorus_runtime::run_blocking;

use super::doc_passages;
use super::word_matcher::{MatchScore, WordMatcher};
use super::{MAX_PAGE, load_memory, to_entries};
use crate::ops::agent::AgentResolver;

/// Limit of passages.
const MAX_PASSAGES: u64 = 50;

/// Finds the memories and the passages of docs/ that contain all words of the query; if there are none, those with half of the
/// words that say something. They are few enough to scan, which finds words in any script, and parts of words, without an index
/// that would keep removed texts.
pub async fn search(
    agents: &AgentResolver,
    table: &Arc<dyn MemoryTable>,
    sessions: &Arc<dyn SessionTable>,
    params: SearchParams,
) -> Result<SearchResult> {
    if params.query.trim().is_empty() {
        return Err(Error::invalid("nothing to search for").hint("chorusctl memory search WORD"));
    }
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let memory = load_memory(table, &agent).await?;
    let matcher = WordMatcher::new(&params.query);
    let text = |row: &MemoryRow| format!("{} {}", row.text, row.path.as_deref().unwrap_or_default());
    let rows: Vec<_> = memory.rows.iter().map(|row| (matcher.score(&text(row)), row.clone())).collect();
    let (docs, of_docs) = (agent.settings.dir.join("docs"), matcher.clone());
    let passages = run_blocking(move || Ok(doc_passages::find(&docs, &of_docs))).await?;
    let partial = !contains_all(&rows) && !contains_all(&passages);
    let mut some = best_of(&matcher, rows, partial);
    let mut docs = best_of(&matcher, passages, partial);
    let total = some.len() as u64;
    let limit = params.limit.unwrap_or(MAX_PAGE);
    some.truncate(limit.min(MAX_PAGE) as usize);
    docs.truncate(limit.min(MAX_PASSAGES) as usize);
    let partial = partial && !(some.is_empty() && docs.is_empty());
    Ok(SearchResult { entries: to_entries(sessions, &agent, &memory, some).await?, total, docs, partial })
}

fn contains_all<T>(scored: &[(MatchScore, T)]) -> bool {
    scored.iter().any(|(score, _)| score.all)
}

/// Returns what matches, best first.
fn best_of<T>(matcher: &WordMatcher, mut scored: Vec<(MatchScore, T)>, partial: bool) -> Vec<T> {
    scored.retain(|(score, _)| matcher.accepts(*score, partial));
    scored.sort_by_key(|(score, _)| Reverse(*score));
    scored.into_iter().map(|(_, text)| text).collect()
}
