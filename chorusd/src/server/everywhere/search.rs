//! Searches the agents of all nodes: each node has the index of its own.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::Ops;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{Search, SearchHit, SearchParams, SearchResult};
use chorus_proto::pluralize::pluralize;
use uuid::Uuid;

use super::{ask_each, others};
use crate::server::elsewhere::ForwardOfClient;

/// Limit of the wait for another node, whose hits are left out then.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Hits if a request does not say how many.
const DEFAULT_LIMIT: u64 = 10;

/// Adds what other nodes find to what this one does, which is `here`.
pub(in crate::server) async fn search(
    ops: &Ops,
    way: &dyn ForwardOfClient,
    (here, params): (impl Future<Output = Result<SearchResult>>, &SearchParams),
    limit: Option<u64>,
) -> Result<SearchResult> {
    let (own, others) = tokio::join!(here, search_elsewhere(ops, way, params));
    let mut others = others?;
    let mut found = match own {
        // Perhaps no agent of this node belongs to the project.
        Err(failure) if failure.kind == ErrorKind::NotFound => {
            let other = others.iter().position(|(_, found)| found.is_ok()).map(|at| others.swap_remove(at).1);
            other.unwrap_or(Err(failure))?
        }
        own => own?,
    };
    merge(&mut found, others, limit);
    if let Some(ownership) = &ops.store.ownership {
        let unclaimed = ownership.count_unclaimed().await?;
        if unclaimed > 0 {
            found.index.complete = false;
            let agents = pluralize(unclaimed, "agent");
            found
                .warnings
                .push(format!("{agents} not searched, because no node has them now: name one to have it searched"));
        }
    }
    Ok(found)
}

/// Lets the other nodes carry the same search out. Returns what each said, with its name.
async fn search_elsewhere(
    ops: &Ops,
    way: &dyn ForwardOfClient,
    params: &SearchParams,
) -> Result<Vec<(String, Result<SearchResult>)>> {
    match others(ops, Some(way)).await? {
        Some((way, nodes)) => Ok(ask_each::<Search>(way, nodes, ANSWER_LIMIT, |_| params.clone()).await),
        None => Ok(Vec::new()),
    }
}

/// Adds the hits of other nodes to those of this one, the best first.
fn merge(own: &mut SearchResult, others: Vec<(String, Result<SearchResult>)>, limit: Option<u64>) {
    for (node, found) in others {
        match found {
            Ok(found) => {
                own.hits.extend(found.hits);
                own.warnings.extend(found.warnings);
                let (index, other) = (&mut own.index, found.index);
                index.complete &= other.complete;
                index.indexed += other.indexed;
                index.total += other.total;
                index.messages += other.messages;
            }
            // It has no agent that is meant.
            Err(failure) if failure.kind == ErrorKind::NotFound => {}
            Err(failure) => {
                tracing::warn!(node, %failure, "a node did not search");
                own.warnings.push(format!("hits of the node {node} are missing: {}", failure.message));
            }
        }
    }
    own.hits.sort_by(|one, other| other.score.partial_cmp(&one.score).unwrap_or(Ordering::Equal));
    // An agent that has just moved may be in the index of both nodes.
    let mut seen = HashSet::new();
    own.hits.retain(|hit| seen.insert(identity(hit)));
    own.hits.truncate(usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX));
    own.warnings.sort();
    own.warnings.dedup();
}

fn identity(hit: &SearchHit) -> (String, Option<Uuid>, Option<u64>, String) {
    let conversation = hit.conversation.as_ref().map(|conversation| format!("{conversation:?}")).unwrap_or_default();
    (
        hit.agent_name.clone() + &conversation,
        hit.session.as_ref().map(|session| session.id),
        hit.message,
        hit.at.to_string(),
    )
}
