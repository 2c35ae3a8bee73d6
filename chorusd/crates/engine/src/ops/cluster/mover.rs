//! Moves all agents of this node to other nodes.

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Elsewhere, Error, Result};
use chorus_journal::{NodeRow, Ownership};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use futures_util::StreamExt as _;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{REACH_LIMIT, reach_all, require_cluster};
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
    pub state: MoverState,
}

/// A move of all agents that goes on.
#[derive(Debug, Default)]
pub struct MoverState {
    /// Held by whoever moves all agents.
    lock: tokio::sync::Mutex<()>,
    /// Told when the node is to keep its agents after all.
    undone: Notify,
}

/// Part of the time for turns in which nodes have to be reached.
const REACH_SHARE: f64 = 0.25;

/// Outcome of a move of all agents.
#[derive(Debug, Default)]
pub struct Moved {
    /// Number of agents that other nodes were given.
    pub agents: u64,
    /// Names of those whose workspaces have files, and stay here.
    pub files_left: Vec<String>,
    /// Names of the nodes that take agents and were given none, because they cannot be reached from here, and why.
    pub unreachable: Vec<(String, Error)>,
    /// Those that are still here, by name if it is known, and why.
    pub left: Vec<(String, Error)>,
    /// The node keeps its agents after all.
    pub is_undone: bool,
}

impl AgentMover {
    /// Lets this node claim no more agents, and moves those that it has, each to the node that has fewest of those that it reaches. Turns may
    /// run until `turns_until`; then they are ended.
    ///
    /// # Errors
    /// `unsupported` without a cluster; `conflict` if no other node takes agents, or none that does is reached, and nothing has
    /// changed then.
    pub async fn move_all(&self, turns_until: Instant) -> Result<Moved> {
        let ownership = require_cluster(&self.claims.store)?;
        let _one_at_a_time = self.state.lock.lock().await;
        let nodes = ownership.nodes().await?.into_iter();
        let others: Vec<NodeRow> = nodes.filter(|node| node.name != ownership.node() && node.takes_agents()).collect();
        if others.is_empty() {
            return Err(Error::new(ErrorKind::Conflict, "no other node of the cluster takes agents")
                .hint("list the nodes: chorusctl cluster"));
        }
        let (mut others, unreachable) = self.split_by_reach(&**ownership, others, turns_until).await;
        if others.is_empty() {
            return Err(unreachable_error(&unreachable));
        }
        ownership.set_draining(true).await?;
        let mut moved = Moved { unreachable, ..Moved::default() };
        for _ in 0..MAX_ROUNDS {
            let (bound, agents): (Vec<Uuid>, Vec<Uuid>) =
                ownership.owned().into_iter().partition(|agent| self.is_bound(*agent));
            moved.left = bound.into_iter().map(|agent| (self.name(agent), bound_error())).collect();
            if agents.is_empty() {
                break;
            }
            let plan: Vec<_> = agents.into_iter().filter_map(|agent| Some((agent, pick(&mut others)?))).collect();
            let moves = Semaphore::new(MAX_CONCURRENT_MOVES);
            let give = |(agent, to)| {
                let moves = &moves;
                async move { (agent, self.move_one(&**ownership, (agent, to), turns_until, moves).await) }
            };
            // All at once: those whose turns run wait for that, and hold nobody up.
            let all = plan.len().max(1);
            let outcomes: Vec<_> = futures_util::stream::iter(plan).map(give).buffer_unordered(all).collect().await;
            for (agent, outcome) in outcomes {
                match outcome {
                    Ok(None) => {}
                    Ok(Some(MovedAgent { name, files_stay })) => {
                        moved.agents += 1;
                        moved.files_left.extend(files_stay.then_some(name));
                    }
                    Err(failure) => moved.left.push((self.name(agent), failure)),
                }
            }
            if !ownership.is_draining() {
                break;
            }
        }
        moved.is_undone = !ownership.is_draining();
        moved.left.sort_by(|one, other| one.0.cmp(&other.0));
        moved.files_left.sort();
        Ok(moved)
    }

    /// Returns the nodes that this one reaches, and the names of the others with the reasons. All are tried at once, for a part of the time
    /// that is left.
    async fn split_by_reach(
        &self,
        ownership: &dyn Ownership,
        nodes: Vec<NodeRow>,
        until: Instant,
    ) -> (Vec<NodeRow>, Vec<(String, Error)>) {
        let limit = until.saturating_duration_since(Instant::now()).mul_f64(REACH_SHARE).min(REACH_LIMIT);
        let Some(reached) = reach_all(ownership, &self.claims.peer_checks, nodes.iter(), limit).await else {
            // Without a port nothing is known. Others may reach them.
            return (nodes, Vec::new());
        };
        let (mut near, mut unreachable) = (Vec::new(), Vec::new());
        for (node, reached) in nodes.into_iter().zip(reached) {
            match reached {
                Ok(()) => near.push(node),
                Err(failure) => {
                    tracing::warn!(node = node.name, %failure, "a node is given no agents: it cannot be reached");
                    unreachable.push((node.name, failure));
                }
            }
        }
        (near, unreachable)
    }

    /// Lets this node claim agents again. A move of all agents ends: those that are not on their way stay.
    ///
    /// # Errors
    /// `unsupported` without a cluster; those of the database.
    pub async fn undo(&self) -> Result<()> {
        require_cluster(&self.claims.store)?.set_draining(false).await?;
        self.state.undone.notify_waiters();
        Ok(())
    }

    /// Moves an agent once its turns have ended and fewer than [`MAX_CONCURRENT_MOVES`] are on their way. Returns `None` if it was
    /// not here.
    async fn move_one(
        &self,
        ownership: &dyn Ownership,
        (agent, to): (Uuid, Elsewhere),
        turns_until: Instant,
        moves: &Semaphore,
    ) -> Result<Option<MovedAgent>> {
        let running = &self.claims.registry.running;
        let mut undone = std::pin::pin!(self.state.undone.notified());
        undone.as_mut().enable();
        let _permit = loop {
            if !ownership.is_draining() {
                return Err(undone_error());
            }
            let ready = async {
                let _ = timeout_at(turns_until, running.wait_until_idle(agent)).await;
                moves.acquire().await
            };
            let permit = tokio::select! {
                permit = ready => permit.map_err(|e| Error::internal(e.to_string()))?,
                () = &mut undone => return Err(undone_error()),
            };
            // A turn may have begun while it waited for its place.
            if running.is_idle(agent) || Instant::now() >= turns_until {
                break permit;
            }
        };
        self.hand_over(ownership, agent, to).await
    }

    /// Returns whether an agent stays here: its conversations are captured from files of this machine.
    fn is_bound(&self, agent: Uuid) -> bool {
        self.claims.index.by_id(agent).is_some_and(|entry| entry.settings.import_source.is_some())
    }

    fn name(&self, agent: Uuid) -> String {
        let entry = self.claims.index.by_id(agent);
        entry.map_or_else(|| agent.to_string(), |entry| entry.settings.name.clone())
    }

    /// Moves an agent to another node. Requests for it wait, and are then forwarded. Returns `None` if it was not here.
    async fn hand_over(&self, ownership: &dyn Ownership, agent: Uuid, to: Elsewhere) -> Result<Option<MovedAgent>> {
        let registry = &self.claims.registry;
        let _alone = self.claims.locks.lock(agent).await;
        if !ownership.owns(agent) {
            return Ok(None);
        }
        let Some(entry) = self.claims.index.by_id(agent).filter(|_| registry.is_adopted(agent)) else {
            // It is destroyed, or was not taken on yet: whoever asks for it claims it.
            registry.abandon(agent);
            return ownership.release(agent).await.map(|_| None);
        };
        let given = self.give(ownership, &entry, to).await;
        self.tasks.unblock_agent(agent);
        given?;
        let (settings, follows) = (&entry.settings, self.claims.store.workspaces.is_some());
        let files_stay = settings.shared_dir.is_none()
            && !(settings.checkpoint_workspace && follows)
            && has_files(settings.workspace()).await;
        Ok(Some(MovedAgent { name: settings.name.clone(), files_stay }))
    }

    async fn give(&self, ownership: &dyn Ownership, entry: &Arc<AgentEntry>, to: Elsewhere) -> Result<()> {
        let (agent, name) = (entry.settings.id, &entry.settings.name);
        // The next owner gets the settings from the row.
        self.editor.agents.reload_if_changed(entry.clone()).await?;
        let ended = self.tasks.stop_and_block_agent(agent).await;
        if !ended.is_empty() {
            // The row, too: the next owner gets it.
            let _alone = self.editor.agents.lock.lock().await;
            if let Err(failure) = self.editor.write_running_tasks(entry, Vec::new()).await {
                tracing::warn!(agent = %name, %failure, "agent.json lists tasks that are not running");
            }
        }
        self.tasks.notify_agents(ended).await;
        // Whatever it was asked for is done and written then; what comes now waits.
        let held = self.claims.registry.hold_for_move(&entry.settings).await?;
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

/// An agent that another node was given.
struct MovedAgent {
    name: String,
    /// Its workspace has files, and is still here.
    files_stay: bool,
}

/// The entries of the workspace of a new agent.
const MADE_WITH_IT: [&str; 2] = [".git", ".gitkeep"];

/// Returns whether a workspace has anything that a new one does not have.
async fn has_files(workspace: PathBuf) -> bool {
    let found = run_blocking(move || {
        let entries = std::fs::read_dir(workspace).into_iter().flatten().flatten();
        Ok(entries.map(|entry| entry.file_name()).any(|name| !MADE_WITH_IT.iter().any(|made| name == *made)))
    });
    found.await.unwrap_or_default()
}

fn bound_error() -> Error {
    Error::new(ErrorKind::Unsupported, "its conversations are captured on this machine")
}

fn unreachable_error(unreachable: &[(String, Error)]) -> Error {
    let nodes: Vec<_> = unreachable.iter().map(|(node, failure)| format!("{node}: {}", failure.message)).collect();
    let what = format!("no node that takes agents can be reached from here ({})", nodes.join("; "));
    Error::new(ErrorKind::Conflict, what).hint("see chorusctl cluster, and run chorusctl doctor on both nodes")
}

fn undone_error() -> Error {
    Error::new(ErrorKind::Conflict, "the drain was undone")
}

/// Picks the node with the fewest agents, and counts one more there.
fn pick(nodes: &mut [NodeRow]) -> Option<Elsewhere> {
    let node = nodes.iter_mut().min_by_key(|node| node.agents)?;
    node.agents += 1;
    Some(Elsewhere { node: node.name.clone(), address: node.address.clone() })
}
