//! Lists of agents: only the node that has an agent knows its live context, its turn and its approvals.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_proto::methods::agent::{List, ListParams, ListResult};
use chorus_proto::methods::daemon::{AgentTotals, Status, StatusParams, StatusResult};
use chorus_proto::{Agent, AgentState, ErrorKind};
use jiff::Timestamp;

use super::{ask_each, others};
use crate::server::elsewhere::ForwardOfClient;

/// Limit of the wait for another node, about whose agents little is said then.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Lists agents as [`ops::agent::list::list`] does.
///
/// # Errors
/// Those of the operation.
pub(in crate::server) async fn list(
    ops: &Ops,
    way: Option<&dyn ForwardOfClient>,
    params: ListParams,
) -> Result<ListResult> {
    let (resolver, describer, table) = (&ops.agent_resolver, &ops.agent_describer, &ops.store.catalog.agents);
    let mut list = ops::agent::list::list(resolver, describer, table, &ops.agents, params).await?;
    let Some((way, others)) = others(ops, way).await? else { return Ok(list) };
    let nodes = nodes_of(&list.agents);
    let asked = others.iter().filter(|other| nodes.contains(&other.node)).cloned().collect();
    let own = |node: &str| ListParams { all: false, node: Some(node.to_owned()) };
    let answers = ask_each::<List>(way, asked, ANSWER_LIMIT, own).await;
    let answers = answers.into_iter().map(|(node, answer)| (node, answer.map(|list| list.agents)));
    complete(ops, &mut list.agents, &mut Known::new(answers));
    Ok(list)
}

/// Returns the status as [`ops::daemon::status`] does, with the tasks of all nodes.
///
/// # Errors
/// Those of the operation.
pub(in crate::server) async fn status(
    ops: &Ops,
    way: Option<&dyn ForwardOfClient>,
    params: StatusParams,
) -> Result<StatusResult> {
    let (is_of_one, limit) = (params.agent.is_some(), params.limit);
    let mut status = ops::daemon::status(ops, params).await?;
    if is_of_one {
        return Ok(status);
    }
    let Some((way, others)) = others(ops, way).await? else { return Ok(status) };
    let mut answers = ask_each::<Status>(way, others, ANSWER_LIMIT, |_| StatusParams { agent: None, limit }).await;
    for (_, answer) in &mut answers {
        let Ok(there) = answer else { continue };
        status.tasks.running += there.tasks.running;
        status.tasks.finished += there.tasks.finished;
        if let (Some(totals), Some(there)) = (&mut status.totals, there.totals) {
            add_active(totals, there);
        }
    }
    let answers = answers.into_iter().map(|(node, answer)| (node, answer.map(|there| there.agents)));
    let mut known = Known::new(answers);
    complete(ops, &mut status.agents, &mut known);
    if let Some(limit) = limit {
        // One that has moved meanwhile is there already.
        let there: HashSet<_> = status.agents.iter().map(|agent| agent.id).collect();
        status.agents.extend(known.take_live().into_iter().filter(|agent| !there.contains(&agent.id)));
        select_first(&mut status.agents, usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(status)
}

/// Agents as the nodes that have them describe them.
struct Known {
    /// By node. A node without an answer is missing; one with another error than that it could not be asked has none.
    agents: HashMap<String, HashMap<uuid::Uuid, Agent>>,
}

impl Known {
    fn new(answers: impl Iterator<Item = (String, Result<Vec<Agent>>)>) -> Self {
        let mut agents = HashMap::new();
        for (node, answer) in answers {
            let there = match answer {
                Ok(there) => there,
                Err(failure) => {
                    tracing::warn!(node, %failure, "a node did not say what its agents do");
                    // One of an earlier version does not know all parameters.
                    if failure.kind != ErrorKind::InvalidParams {
                        continue;
                    }
                    Vec::new()
                }
            };
            let own = there.into_iter().filter(|agent| agent.node.as_ref() == Some(&node));
            let own = own.map(|agent| (agent.id, agent)).collect();
            agents.insert(node, own);
        }
        Self { agents }
    }

    /// Removes and returns those with a live conversation.
    fn take_live(&mut self) -> Vec<Agent> {
        let left = self.agents.drain().flat_map(|(_, agents)| agents.into_values());
        left.filter(|agent| agent.state == AgentState::Active).collect()
    }
}

fn nodes_of(agents: &[Agent]) -> HashSet<String> {
    agents.iter().filter_map(|agent| agent.node.clone()).collect()
}

/// Replaces what this node says about the agents of others. Notes which of them have a node that does not answer.
fn complete(ops: &Ops, agents: &mut [Agent], known: &mut Known) {
    let own = ops.store.ownership.as_ref().map(|ownership| ownership.node());
    for agent in agents {
        let Some(node) = agent.node.as_deref().filter(|node| Some(*node) != own) else { continue };
        match known.agents.get_mut(node) {
            // Missing if it has moved meanwhile.
            Some(there) => *agent = there.remove(&agent.id).unwrap_or_else(|| agent.clone()),
            None => agent.unreachable = true,
        }
    }
}

fn add_active(totals: &mut AgentTotals, there: AgentTotals) {
    let active = there.active.min(totals.idle);
    totals.active += active;
    totals.idle -= active;
    totals.approvals += there.approvals;
}

/// Selects at most `limit` agents as [`ops::daemon::status`] does.
fn select_first(agents: &mut Vec<Agent>, limit: usize) {
    let (mut first, mut idle): (Vec<_>, Vec<_>) = agents.drain(..).partition(|agent| agent.state == AgentState::Active);
    if first.len() > limit {
        first.sort_by_key(|agent| Reverse(last_activity(agent)));
        first.truncate(limit);
    }
    first.sort_by(|one, other| one.name.cmp(&other.name));
    idle.sort_by(|one, other| one.name.cmp(&other.name));
    idle.truncate(limit - first.len());
    agents.extend(first.into_iter().chain(idle));
}

fn last_activity(agent: &Agent) -> Option<Timestamp> {
    let others = agent.conversations.iter().filter_map(|conversation| conversation.context.as_ref());
    agent.context.iter().chain(others).map(|context| context.last_activity_at).max()
}
