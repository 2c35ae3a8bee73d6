//! The operation `agent.list`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::AgentTable;
use chorus_proto::AgentStatus;
use chorus_proto::methods::agent::{ListParams, ListResult};

use super::{AgentDescriber, AgentResolver};
use crate::agent::agent_index::AgentIndex;
use crate::ops::cluster::drain::find_node;

/// Lists agents by name; with `all`, destroyed ones after them. Those of other nodes are described without their live contexts.
///
/// # Errors
/// `not_found` for a node that the cluster does not have; those of the store.
pub async fn list(
    resolver: &AgentResolver,
    describer: &AgentDescriber,
    table: &Arc<dyn AgentTable>,
    index: &AgentIndex,
    params: ListParams,
) -> Result<ListResult> {
    let mut entries = resolver.all().await?;
    if let Some(node) = &params.node {
        let nodes = describer.nodes_of(&entries).await?;
        entries.retain(|entry| nodes.get(&entry.settings.id) == Some(node));
        if let Some(ownership) = &resolver.claims.store.ownership
            && entries.is_empty()
        {
            find_node(&ownership.nodes().await?, node)?;
        }
    }
    let mut agents = describer.describe_all(&entries).await?;
    if params.all && params.node.is_none() {
        let rows = table.list(true).await?;
        agents.extend(
            rows.iter().filter(|row| row.status == AgentStatus::Destroyed).map(|row| describer.describe_destroyed(row)),
        );
    }
    Ok(ListResult { agents, chosen: index.selected().map(|entry| entry.settings.name.clone()) })
}
