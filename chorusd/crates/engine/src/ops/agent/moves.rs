//! The background tasks of an agent that comes to this daemon from another one, or goes to one, and its questions to
//! people.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::TaskRow;
use chorus_clock::Clock;
use chorus_proto::methods::approvals::Approval;
use chorus_store::Store;
use uuid::Uuid;

use crate::approvals::Approvals;
use crate::tasks::Tasks;

/// The services that have something of an agent besides its contexts.
#[derive(Debug, Clone)]
pub struct AgentMoves {
    pub store: Arc<Store>,
    pub tasks: Tasks,
    pub approvals: Arc<Approvals>,
    pub clock: Clock,
}

/// The unfinished work of the former daemon of an agent.
#[derive(Debug)]
pub(super) struct LeftBehind {
    agent: Uuid,
    approvals: Vec<Approval>,
    tasks: Vec<TaskRow>,
}

impl AgentMoves {
    /// Reads what the former daemon left unfinished. Called before this daemon does anything for the agent, whose own
    /// questions and tasks must not be among it.
    pub(super) async fn find_left_behind(&self, agent: Uuid) -> Result<LeftBehind> {
        let catalog = &self.store.catalog;
        let (approvals, tasks) =
            tokio::try_join!(catalog.approvals.list_open_of(agent), catalog.tasks.list_unreported(agent))?;
        Ok(LeftBehind { agent, approvals, tasks })
    }

    /// Denies its open questions, because nobody waits for the answers any more, marks its running tasks as lost, and tells
    /// the agent. Returns at once.
    pub(super) fn close_left_behind(&self, left: LeftBehind) {
        let LeftBehind { agent, approvals, tasks: rows } = left;
        if approvals.is_empty() && rows.is_empty() {
            return;
        }
        let (moves, tasks) = (self.clone(), self.tasks.clone());
        chorus_runtime::spawn(async move {
            if let Err(failure) = moves.deny(agent, approvals).await {
                tracing::warn!(%agent, %failure, "cannot deny the approvals that were pending on another node");
            }
            match tasks.mark_lost(rows).await {
                Ok(recovered) => tasks.notify_recovered(recovered).await,
                Err(failure) => tracing::warn!(%agent, %failure, "cannot record the tasks of another node as lost"),
            }
        });
    }

    /// Closes the questions and tasks of this daemon's agents that have ended and are still open in the tables, because the
    /// database could not be reached then.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn close_unrecorded(&self) -> Result<()> {
        let catalog = &self.store.catalog;
        let (open, mut tasks) = (catalog.approvals.list_open().await?, catalog.tasks.list_at_start().await?.unreported);
        for (approval, agent) in open {
            if self.approvals.agent_of(&approval.id).is_none() {
                self.deny(agent, vec![approval]).await?;
            }
        }
        tasks.retain(|row| !self.tasks.has(&row.id));
        let recovered = self.tasks.mark_lost(tasks).await?;
        self.tasks.notify_recovered(recovered).await;
        Ok(())
    }

    async fn deny(&self, agent: Uuid, open: Vec<Approval>) -> Result<()> {
        let (table, why) = (&*self.store.catalog.approvals, "its node stopped, or lost the database");
        crate::approvals::left_open::deny(table, (agent, open), self.clock.now(), why).await
    }

    /// Ends the tasks of an agent that another daemon has taken over, and forgets its questions. Nothing is written.
    pub(super) fn abandon(&self, agent: Uuid) {
        self.tasks.abandon(agent);
        self.approvals.forget(agent);
    }
}
