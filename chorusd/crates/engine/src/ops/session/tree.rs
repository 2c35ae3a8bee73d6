//! The operation `session.tree`.

use chorus_agent_core::context::PageBudget;
use chorus_base::error::Result;
use chorus_catalog::{LineageRow, SessionName};
use chorus_config::Config;
use chorus_proto::Trigger;
use chorus_proto::methods::session_branching::{TreeGap, TreeLive, TreeParams, TreeResult, TreeSession};
use chorus_runtime::run_blocking;
use chorus_session::session_tree::{Leaf, Node, Tree, arrange};
use uuid::Uuid;

use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::session::SessionReader;

/// The limit on sessions in a page.
const MAX_PAGE: u64 = 5000;

/// The limit on characters of a summary.
const MAX_SUMMARY_CHARS: usize = 300;

/// Returns the sessions of an agent as a tree, with imported conversations unless a person named the agent. It uses only the catalog and reads no files.
pub async fn tree(
    agents: &AgentResolver,
    sessions: &SessionReader,
    registry: &Registry,
    config: &Config,
    params: TreeParams,
) -> Result<TreeResult> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let info = registry.context_info(target.key);
    let leaf = info.as_ref().map(|info| Leaf { parent: info.parent_id, started_at: info.started_at });
    let is_named = params.agent.is_some() && !params.own;
    let others = if is_named { Vec::new() } else { sessions.imported_by_others(Some(target.key.agent)) };
    let rows = sessions.table.lineage(std::iter::once(target.key.agent).chain(others).collect()).await?;
    let (rows, tree) = run_blocking(move || {
        let nodes: Vec<Node> = rows.iter().map(to_node).collect();
        let tree = arrange(&nodes, leaf);
        Ok((rows, tree))
    })
    .await?;
    let Tree { entries: places, roots, missing_parents: gaps, leaf } = tree;
    let total = places.len() as u64;
    let offset = params.offset.unwrap_or(0).min(total);
    let limit = params.limit.unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let page = places.iter().skip(to_index(offset)).take(to_index(limit));
    let short = sessions.table.short_ids(page.clone().map(|place| rows[place.node].id).collect()).await?;
    // Roots and gaps describe the whole tree, so only the first page has them.
    let (roots, gaps) = if offset == 0 { (roots, describe_gaps(sessions, gaps).await?) } else { Default::default() };
    let mut room =
        PageBudget::from_max_frame(config.max_frame).page_bytes.saturating_sub(approx_bytes_of_links(&roots, &gaps));
    let mut sessions = Vec::with_capacity(short.len());
    for (place, short_id) in page.zip(short) {
        let session = TreeSession {
            hangs_from: place.predecessor,
            cycle: place.cycle,
            ..to_tree_session(&rows[place.node], short_id)
        };
        let size = approx_bytes(&session);
        if size > room && !sessions.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        sessions.push(session);
    }
    let next = offset + sessions.len() as u64;
    let live = info.map(|info| TreeLive {
        hangs_from: leaf,
        parent_id: info.parent_id,
        started_at: info.started_at,
        last_activity_at: info.last_activity_at,
        messages: info.messages,
        unsaved: info.unsaved,
    });
    Ok(TreeResult { sessions, roots, gaps, live, total, next: (next < total && limit > 0).then_some(next) })
}

fn to_index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn to_node(row: &LineageRow) -> Node {
    Node {
        id: row.id,
        parent: row.parent_id,
        saved_at: row.source.map_or(row.saved_at, |source| source.ended_at),
        started_at: row.started_at,
        imported: row.trigger == Trigger::Import,
    }
}

/// Converts a row; the caller sets the position in the tree.
fn to_tree_session(row: &LineageRow, short_id: String) -> TreeSession {
    TreeSession {
        id: row.id,
        short_id,
        session_id: row.session_id.clone(),
        saved_at: row.saved_at,
        ended_at: row.source.map(|source| source.ended_at),
        trigger: row.trigger,
        message_count: row.message_count,
        description: row.description.clone(),
        summary: row.summary.as_ref().map(|summary| summary.chars().take(MAX_SUMMARY_CHARS).collect()),
        tags: row.tags.clone(),
        parent_id: row.parent_id,
        hangs_from: None,
        cycle: false,
        corrupt: row.corrupt.clone(),
    }
}

/// Returns the approximate bytes of a session in the reply.
fn approx_bytes(session: &TreeSession) -> usize {
    let texts = [&session.description, &session.summary, &session.corrupt].into_iter().flatten().chain(&session.tags);
    // Each byte of a text may have to be escaped.
    600 + session.session_id.len() + texts.map(|text| 2 * text.len() + 4).sum::<usize>()
}

/// Returns the approximate bytes of roots and gaps in the reply.
fn approx_bytes_of_links(roots: &[Uuid], gaps: &[TreeGap]) -> usize {
    let texts = gaps.iter().flat_map(|gap| [&gap.agent_name, &gap.session_id]).flatten();
    40 * roots.len() + 100 * gaps.len() + texts.map(|text| 2 * text.len()).sum::<usize>()
}

/// Describes parents that are not sessions of this agent; another agent may have them.
async fn describe_gaps(sessions: &SessionReader, gaps: Vec<Uuid>) -> Result<Vec<TreeGap>> {
    let mut others = sessions.table.names(gaps.clone()).await?;
    let gap = |id| {
        let other = others.remove(&id).map(|SessionName { agent_name, session_id }| (agent_name, session_id));
        let (agent_name, session_id) = other.unzip();
        TreeGap { id, agent_name, session_id }
    };
    Ok(gaps.into_iter().map(gap).collect())
}
