//! Agents that this daemon has claimed and cannot take on, for example because it cannot write their files: another node gets
//! them.

use std::collections::HashMap;
use std::time::Duration;

use chorus_base::error::{Elsewhere, Error, Result};
use chorus_base::sync::Mutex;
use chorus_journal::{Owner, Ownership};
use tokio::time::Instant;
use uuid::Uuid;

use super::claims::AgentClaims;
use crate::ops::cluster::reach_owner;

/// Time in which a node gives an agent that it cannot take on to another one only once: that one may not be able to either.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Limit of the agents that are remembered.
const MAX_FAILED: usize = 10_000;

/// Limit of the nodes that are tried for an agent.
const MAX_SUCCESSORS: usize = 2;

/// When agents were given to other nodes because this one cannot take them on.
#[derive(Debug, Default)]
pub struct FailedAdoptions(Mutex<HashMap<Uuid, Instant>>);

impl FailedAdoptions {
    /// Records that an agent cannot be taken on. Returns whether that is the first time lately.
    fn note(&self, agent: Uuid) -> bool {
        let mut failed = self.0.lock();
        let now = Instant::now();
        if failed.len() >= MAX_FAILED {
            failed.retain(|_, since| now.duration_since(*since) < RETRY_AFTER);
        }
        match failed.get(&agent) {
            Some(since) if now.duration_since(*since) < RETRY_AFTER => false,
            _ => {
                failed.insert(agent, now);
                true
            }
        }
    }
}

impl AgentClaims {
    /// Gives an agent that this daemon owns and cannot take on to another node. Returns that node; `None` if there is none, or if
    /// this was tried lately: then nobody owns the agent, and the next request claims it.
    pub(super) async fn pass_on(
        &self,
        ownership: &dyn Ownership,
        (agent, name): (Uuid, &str),
        failure: &Error,
    ) -> Option<Elsewhere> {
        let successor = if self.failed.note(agent) {
            match self.find_reachable_successor(ownership).await {
                Ok(successor) => successor,
                Err(unreachable) => {
                    // So it cannot be given up either.
                    tracing::error!(%agent, name, %failure, %unreachable, "cannot take an agent on");
                    return None;
                }
            }
        } else {
            None
        };
        let released = match &successor {
            Some(Owner { node, .. }) => {
                tracing::error!(%agent, name, %failure, node, "cannot take an agent on; giving it to another node");
                ownership.hand_over(agent, node.clone()).await
            }
            None => {
                tracing::error!(%agent, name, %failure, "cannot take an agent on; no node has it now");
                ownership.release(agent).await.map(drop)
            }
        };
        if let Err(failure) = released {
            // It is still owned, or another node has it: the next request tries again.
            tracing::warn!(%agent, %failure, "cannot give an agent up");
            return None;
        }
        let Owner { node, address } = successor?;
        Some(Elsewhere { node, address })
    }

    /// Returns another node that takes agents and that this one reaches; `None` if none was found.
    async fn find_reachable_successor(&self, ownership: &dyn Ownership) -> Result<Option<Owner>> {
        for _ in 0..MAX_SUCCESSORS {
            let Some(successor) = ownership.find_successor().await? else { return Ok(None) };
            if reach_owner(ownership, &self.peer_checks, &successor).await {
                return Ok(Some(successor));
            }
        }
        Ok(None)
    }
}
