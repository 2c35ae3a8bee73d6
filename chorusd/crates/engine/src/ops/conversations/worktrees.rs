//! The git worktrees of conversations: their names, and what becomes of them when a conversation is closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_journal::ConversationRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{ClosedWorktree, ConversationWorktree};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::slug;
use tokio_util::sync::CancellationToken;

use crate::agent::agent_index::AgentEntry;
use crate::agent::checkpoint_on_save::{works_in_worktree, workspace_context};
use crate::agent::command::{self, HoldGuard};
use crate::ops::agent::AgentResolver;
use crate::tools::worktree::{RemovedWorktree, WORKTREES_DIR, Worktree, branch_of, is_name_taken, remove};
use crate::tools::{ToolContext, WorkingDirectory};

/// The contexts in which git runs for the worktree of a conversation.
pub(super) struct WorktreeContexts {
    /// That of the agent's workspace.
    pub workspace: ToolContext,
    /// That of the worktree.
    pub own: ToolContext,
    pub worktree: Arc<Worktree>,
}

/// The result of removing the worktree of a conversation.
#[derive(Debug)]
pub struct WorktreeRemoval {
    pub closed: ClosedWorktree,
    /// It stays because a turn or a background task runs in the conversation.
    pub is_busy: bool,
}

/// Returns the contexts for the worktree with this name.
pub(super) async fn worktree_contexts(
    agents: &AgentResolver,
    agent: &AgentEntry,
    key: ConversationKey,
    name: &str,
) -> Result<WorktreeContexts> {
    let (settings, name) = (&agent.settings, name.to_owned());
    let dir = settings.files_dir().to_owned();
    let found = run_blocking(move || Worktree::find(&dir, &name).map_err(|why| Error::new(ErrorKind::GitFailed, why)));
    let worktree = Arc::new(found.await?);
    let context = |key| workspace_context(&agents.registry, settings, key, CancellationToken::new());
    let mut own = context(key);
    own.place = WorkingDirectory::Worktree(worktree.clone());
    // Its commits name the conversation, too.
    let workspace = ToolContext { conversation_name: own.conversation_name.clone(), ..context(key) };
    Ok(WorktreeContexts { workspace, own, worktree })
}

/// Returns the directory in which the tools of a conversation work. It may not exist yet if that is a worktree.
#[must_use]
pub fn directory_of(settings: &AgentSettings, key: ConversationKey, row: Option<&ConversationRow>) -> PathBuf {
    match row.and_then(|row| row.worktree.as_ref()) {
        Some(name) if works_in_worktree(settings, key) => settings.files_dir().join(WORKTREES_DIR).join(name),
        _ => settings.workspace(),
    }
}

/// Describes the worktree of a conversation. Reads the directory.
pub(super) fn describe_worktree(files_dir: &Path, row: &ConversationRow) -> Option<ConversationWorktree> {
    let name = row.worktree.as_deref()?;
    let directory = files_dir.join(WORKTREES_DIR).join(name);
    let exists = directory.join(".git").symlink_metadata().is_ok();
    Some(ConversationWorktree {
        branch: branch_of(name),
        directory: exists.then(|| directory.to_string_lossy().into_owned()),
    })
}

impl AgentResolver {
    /// Returns the name of the worktree of a conversation, and gives it one that is free if it has none.
    ///
    /// # Errors
    /// `conversation_not_found`, `storage_failed`.
    pub async fn reserve_worktree(&self, key: ConversationKey) -> Result<String> {
        if let Some(name) = self.index.conversations.get(key).and_then(|row| row.worktree.clone()) {
            return Ok(name);
        }
        let _one_at_a_time = self.conversation_locks.lock(key.agent).await;
        let gone = || Error::new(ErrorKind::ConversationNotFound, "the conversation does not exist any more");
        let row = self.index.conversations.get(key).ok_or_else(gone)?;
        if let Some(name) = &row.worktree {
            return Ok(name.clone());
        }
        let agent = self.index.by_id(key.agent).ok_or_else(gone)?;
        let others: Vec<String> = {
            let rows = self.index.conversations.of_agent(key.agent);
            rows.iter().filter_map(|row| row.worktree.clone()).collect()
        };
        let (dir, wanted) = (agent.settings.files_dir().to_owned(), row.name.clone());
        let is_taken = move |name: &str| others.iter().any(|other| other == name) || is_name_taken(&dir, name);
        let name = run_blocking(move || Ok(slug::free_name(&wanted, is_taken))).await?;
        self.store_conversation(ConversationRow { worktree: Some(name.clone()), ..(*row).clone() }).await?;
        Ok(name)
    }

    /// Keeps requests from a conversation until the guard is dropped.
    ///
    /// # Errors
    /// `busy` if a turn or a background task runs in it.
    pub(super) async fn hold_conversation(&self, agent: &AgentEntry, key: ConversationKey) -> Result<HoldGuard> {
        let name = self.index.conversations.name(key);
        let name = name.as_deref().unwrap_or("main");
        let busy = |what: &str, hint: String| Error::new(ErrorKind::Busy, format!("{what} in {name}")).hint(hint);
        if self.registry.running.status(key, self.registry.ticks()).is_some() {
            return Err(busy("a turn is running", "wait until it has ended, then try again".into()));
        }
        if let Some(task) = self.registry.tools.tasks.running_in(key) {
            let stop = format!(
                "wait until it has ended, or stop it: chorusctl --agent {} tasks stop {task}",
                agent.settings.name
            );
            return Err(busy(&format!("background task {task} is running"), stop));
        }
        self.registry.ask(key, command::hold(None)).await
    }

    /// Removes the worktree of a conversation that was closed, if it has one. What is not committed in it is committed to its
    /// branch first; a branch that is merged is deleted. If a message has opened the conversation again, the worktree stays.
    pub async fn close_worktree(&self, agent: &AgentEntry, key: ConversationKey) -> Option<WorktreeRemoval> {
        // Before requests are kept from it, because that starts it.
        self.worktree_to_remove(key)?;
        let held = self.hold_conversation(agent, key).await;
        let name = self.worktree_to_remove(key)?;
        let mut closed = ClosedWorktree {
            branch: branch_of(&name),
            committed: false,
            unmerged_commits: 0,
            branch_deleted: false,
            kept: None,
            directory: agent.settings.files_dir().join(WORKTREES_DIR).join(&name).to_string_lossy().into_owned(),
        };
        let removed = match held {
            Ok(_held) => self.remove_worktree(agent, key, &name).await,
            Err(failure) => Err(failure),
        };
        let is_busy = removed.as_ref().is_err_and(|failure| failure.kind == ErrorKind::Busy);
        match removed {
            Ok(RemovedWorktree { committed, unmerged_commits, branch_deleted }) => {
                (closed.committed, closed.unmerged_commits) = (committed, unmerged_commits);
                closed.branch_deleted = branch_deleted;
                if branch_deleted && let Err(failure) = self.forget_worktree(key, &name).await {
                    tracing::warn!(agent = %agent.settings.name, worktree = name, %failure, "its name stays reserved");
                }
            }
            Err(failure) => {
                tracing::warn!(agent = %agent.settings.name, worktree = name, %failure, "a worktree stays");
                closed.kept = Some(failure.message);
            }
        }
        Some(WorktreeRemoval { closed, is_busy })
    }

    /// Returns true if the conversation is closed, and the directory of its worktree is still there. Reads the directory.
    #[must_use]
    pub fn has_worktree_to_remove(&self, agent: &AgentEntry, key: ConversationKey) -> bool {
        let exists =
            |name: String| agent.settings.files_dir().join(WORKTREES_DIR).join(name).symlink_metadata().is_ok();
        self.worktree_to_remove(key).is_some_and(exists)
    }

    /// Returns the name of the worktree of a conversation that is closed.
    fn worktree_to_remove(&self, key: ConversationKey) -> Option<String> {
        self.index.conversations.get(key).filter(|row| row.closed_at.is_some())?.worktree.clone()
    }

    /// Removes the worktree of a conversation from which requests are kept. Not under the lock of the agent's conversations,
    /// which whoever waits for this one may have.
    async fn remove_worktree(&self, agent: &AgentEntry, key: ConversationKey, name: &str) -> Result<RemovedWorktree> {
        let WorktreeContexts { workspace, own, worktree } = worktree_contexts(self, agent, key, name).await?;
        remove(&workspace, &own, &worktree).await.map_err(|why| Error::new(ErrorKind::GitFailed, why))
    }

    /// Gives up the name of a worktree that is gone with its branch, unless the conversation was opened since.
    async fn forget_worktree(&self, key: ConversationKey, name: &str) -> Result<()> {
        let _one_at_a_time = self.conversation_locks.lock(key.agent).await;
        match self.index.conversations.get(key) {
            Some(row) if row.closed_at.is_some() && row.worktree.as_deref() == Some(name) => {
                self.store_conversation(ConversationRow { worktree: None, ..(*row).clone() }).await
            }
            _ => Ok(()),
        }
    }
}
