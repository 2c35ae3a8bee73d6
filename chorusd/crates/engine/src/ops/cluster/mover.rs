//! Moves all agents of this node to other nodes.

use std::sync::Arc;

use chorus_agent_core::interruption_reason::Interruption;
use chorus_base::error::{Elsewhere, Error, Result};
use chorus_journal::{NodeRow, Ownership};
use chorus_proto::ErrorKind;
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::require_cluster;
use crate::agent::agent_index::AgentEntry;
use crate::ops::agent::{AgentClaims, AgentEditor};
use crate::tasks::Tasks;

/// Limit of the agents that are moved at a time.
const MAX_CONCURRENT_MOVES: usize = 16;

/// Limit of the rounds: an agent that was claimed while the first one ran is moved by the next.
const MAX_ROUNDS: usize = 3;

/// Moves the agents of this node.
#[derive(Debug)]
pub struct AgentMover {
    pub claims: Arc<AgentClaims>,
    pub editor: Arc<AgentEditor>,
    pub tasks: Tasks,
    /// Held by whoever moves all agents.
    pub lock: tokio::sync::Mutex<()>,
}

/// Outcome of a move of all agents.
#[derive(Debug, Default)]
pub struct Moved {
    /// Number of agents that other nodes were given.
    pub agents: u64,
    /// Those that are still here, by name if it is known, and why.
    pub left: Vec<(String, Error)>,
}

impl AgentMover {
    /// Lets this node claim no more agents, and moves those that it has, each to the node that has fewest. Turns may
    /// run until `turns_until`; then they are ended.
    ///
    /// # Errors
    /// `unsupported` without a cluster; `conflict` if no other node takes agents, and nothing has changed then.
    pub async fn move_all(&self, turns_until: Instant) -> Result<Moved> {
        let ownership = require_cluster(&self.claims.store)?;
        let _one_at_a_time = self.lock.lock().await;
        let nodes = ownership.nodes().await?.into_iter();
        let mut others: Vec<NodeRow> =
            nodes.filter(|node| node.name != ownership.node() && node.takes_agents()).collect();
        if others.is_empty() {
            return Err(Error::new(ErrorKind::Conflict, "no other node of the cluster takes agents")
                .hint("list the nodes: chorusctl cluster"));
        }
        ownership.set_draining(true).await?;
        let mut moved = Moved::default();
        for _ in 0..MAX_ROUNDS {
            let (bound, agents): (Vec<Uuid>, Vec<Uuid>) =
                ownership.owned().into_iter().partition(|agent| self.is_bound(*agent));
            moved.left = bound.into_iter().map(|agent| (self.name(agent), bound_error())).collect();
            if agents.is_empty() {
                break;
            }
            let plan: Vec<_> = agents.into_iter().filter_map(|agent| Some((agent, pick(&mut others)?))).collect();
            let give = |(agent, to)| async move {
                let outcome = self.hand_over(&**ownership, agent, to, turns_until).await;
                (agent, outcome)
            };
            let outcomes: Vec<_> =
                futures_util::stream::iter(plan).map(give).buffer_unordered(MAX_CONCURRENT_MOVES).collect().await;
            for (agent, outcome) in outcomes {
                match outcome {
                    Ok(was_here) => moved.agents += u64::from(was_here),
                    Err(failure) => moved.left.push((self.name(agent), failure)),
                }
            }
        }
        moved.left.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(moved)
    }

    /// Returns whether an agent stays here: its conversations are captured from files of this machine.
    fn is_bound(&self, agent: Uuid) -> bool {
        self.claims.index.by_id(agent).is_some_and(|entry| entry.settings.import_source.is_some())
    }

    fn name(&self, agent: Uuid) -> String {
        let entry = self.claims.index.by_id(agent);
        entry.map_or_else(|| agent.to_string(), |entry| entry.settings.name.clone())
    }

    /// Moves an agent to another node. Requests for it wait, and are then forwarded. Returns whether it was here.
    async fn hand_over(
        &self,
        ownership: &dyn Ownership,
        agent: Uuid,
        to: Elsewhere,
        turns_until: Instant,
    ) -> Result<bool> {
        let registry = &self.claims.registry;
        let _ = timeout_at(turns_until, registry.running.wait_until_idle(agent)).await;
        let _alone = self.claims.locks.lock(agent).await;
        if !ownership.owns(agent) {
            return Ok(false);
        }
        let Some(entry) = self.claims.index.by_id(agent).filter(|_| registry.is_adopted(agent)) else {
            // It is destroyed, or was not taken on yet: whoever asks for it claims it.
            registry.abandon(agent);
            return ownership.release(agent).await.map(|_| false);
        };
        let given = self.give(ownership, &entry, to).await;
        self.tasks.unblock_agent(agent);
        given.map(|()| true)
    }

    async fn give(&self, ownership: &dyn Ownership, entry: &Arc<AgentEntry>, to: Elsewhere) -> Result<()> {
        let (agent, name) = (entry.settings.id, &entry.settings.name);
        // The next owner gets the settings from the row.
        self.editor.agents.reload_if_changed(entry.clone()).await?;
        let ended = self.tasks.stop_and_block_agent(agent).await;
        if !ended.is_empty()
            && let Err(failure) = self.editor.clear_running_tasks(entry).await
        {
            tracing::warn!(agent = %name, %failure, "agent.json lists tasks that are not running");
        }
        self.tasks.notify_agents(ended).await;
        // Whatever it was asked for is done and written then; what comes now waits.
        let held = self.claims.registry.hold_agent(&entry.settings, Some(Interruption::AgentMoved)).await?;
        self.claims.hand_over(agent).await?;
        let node = to.node.clone();
        let given = ownership.hand_over(agent, node.clone()).await;
        // If the answer was lost, this node does not own it either as far as it knows.
        self.claims.registry.abandon_to(agent, to);
        self.claims.index.remove_moved(agent);
        self.claims.index.conversations.forget_agent(agent);
        drop(held);
        tracing::info!(agent = %name, node, "moved an agent to another node");
        given
    }
}

fn bound_error() -> Error {
    Error::new(ErrorKind::Unsupported, "its conversations are captured on this machine")
}

/// Picks the node with the fewest agents, and counts one more there.
fn pick(nodes: &mut [NodeRow]) -> Option<Elsewhere> {
    let node = nodes.iter_mut().min_by_key(|node| node.agents)?;
    node.agents += 1;
    Some(Elsewhere { node: node.name.clone(), address: node.address.clone() })
}
