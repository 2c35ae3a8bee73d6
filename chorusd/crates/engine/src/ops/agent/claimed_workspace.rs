//! The workspace of an agent that this daemon has claimed, or that has just been made: here, or in a directory that the nodes share.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::Result;
use chorus_catalog::AgentRow;
use chorus_runtime::run_blocking;
use chorus_store::{FoundWorkspace, WorkspaceRoot};
use uuid::Uuid;

use super::AgentClaims;
use crate::agent::shared_workspace::{self, WorkspaceNews};

impl AgentClaims {
    /// Makes sure that the workspace of an agent that was just claimed is where its tools look for it. Returns what the agent has to know
    /// about it.
    pub(super) async fn take_on_workspace(
        &self,
        settings: &Arc<AgentSettings>,
        epoch: i64,
        node: &str,
    ) -> Result<Option<WorkspaceNews>> {
        let restore = shared_workspace::take_on(&self.registry, settings, epoch, node);
        let Some(root) = self.store.workspace_root.clone() else { return Ok(restore.await) };
        let found = settle(&root, (settings.id, &settings.dir)).await?;
        let news = match &found {
            FoundWorkspace::Shared => return Ok(None),
            FoundWorkspace::Both(kept) => return Ok(Some(WorkspaceNews::of_another(node, kept))),
            // The first node that has the agent since all share its workspace: what was saved before is in bundles.
            FoundWorkspace::Local | FoundWorkspace::Nowhere => restore.await,
        };
        if news.as_ref().is_none_or(|news| !news.is_failure) {
            let agent = settings.id;
            run_blocking(move || root.set_complete(agent)).await?;
        }
        Ok(news.filter(|news| news.for_all || found == FoundWorkspace::Nowhere))
    }

    /// Returns the agents that have their workspaces in the directory that the nodes share, and nowhere else. Empty if they share none.
    pub(super) async fn settled_workspaces(&self, rows: &[AgentRow]) -> Result<HashSet<Uuid>> {
        let Some(root) = self.store.workspace_root.clone() else { return Ok(HashSet::new()) };
        let agents: Vec<_> = rows.iter().map(|row| (row.id, self.home.join(&row.dir))).collect();
        run_blocking(move || root.settled(&agents)).await
    }

    /// As [`AgentClaims::take_on_workspace`], for an agent that this daemon had last: what other nodes know of it is no newer.
    pub(super) async fn settle_former_workspace(&self, agent: (Uuid, &Path)) -> Result<()> {
        let Some(root) = self.store.workspace_root.clone() else { return Ok(()) };
        if settle(&root, agent).await? == FoundWorkspace::Local {
            let agent = agent.0;
            run_blocking(move || root.set_complete(agent)).await?;
        }
        Ok(())
    }

    /// Does the same for an agent whose directory has come back to this daemon.
    pub(in crate::ops) async fn settle_kept_workspace(&self, (agent, dir): (Uuid, &Path)) -> Result<()> {
        let Some(root) = self.store.workspace_root.clone() else { return Ok(()) };
        settle(&root, (agent, dir)).await?;
        run_blocking(move || root.set_complete(agent)).await
    }

    /// Moves the workspace of a new agent, which is in `dir`, to the directory that the nodes share, if they do.
    pub(in crate::ops) async fn move_new_workspace(&self, (agent, dir): (Uuid, &Path)) -> Result<()> {
        let Some(root) = self.store.workspace_root.clone() else { return Ok(()) };
        let dir = dir.to_owned();
        run_blocking(move || root.move_new(agent, &dir)).await
    }
}

async fn settle(root: &Arc<WorkspaceRoot>, (agent, dir): (Uuid, &Path)) -> Result<FoundWorkspace> {
    let (root, dir) = (root.clone(), dir.to_owned());
    let found = run_blocking(move || root.settle(agent, &dir)).await?;
    if let FoundWorkspace::Both(kept) = &found {
        tracing::warn!(%agent, "the nodes share its workspace, and this one had another: it is {}", kept.display());
    }
    Ok(found)
}
