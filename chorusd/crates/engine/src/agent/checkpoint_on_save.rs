//! Checkpoints: commits of an agent's workspace when its context is saved.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::effect::SessionDraft;
use chorus_base::requester::Requester;
use chorus_proto::Trigger;
use chorus_session::conversation::ConversationKey;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::registry::Registry;
use super::shared_workspace;
use crate::tools::checkpoint::{self, CheckpointCommit};
use crate::tools::workspace_restore::prepare_repository;
use crate::tools::{ToolContext, WorkingDirectory, worktree};

/// Maximum number of concurrent checkpoints that no user waits for.
const MAX_BACKGROUND_CHECKPOINTS: usize = 2;

/// Maximum number of concurrent bundles of workspaces.
const MAX_BUNDLES: usize = 4;

/// Time limit for git.
const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for git while the daemon stops, including the wait for other checkpoints.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Time limit for git to end once it is cancelled, so that it can remove its lock files.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum characters of a commit message.
const MAX_MESSAGE_CHARS: usize = 120;

/// Limits the concurrent checkpoints of contexts that expire or are saved at shutdown, and the bundles of workspaces that are made.
#[derive(Debug)]
pub struct CheckpointLimit {
    background: Semaphore,
    bundles: Semaphore,
}

impl Default for CheckpointLimit {
    fn default() -> Self {
        let (background, bundles) = (Semaphore::new(MAX_BACKGROUND_CHECKPOINTS), Semaphore::new(MAX_BUNDLES));
        Self { background, bundles }
    }
}

impl CheckpointLimit {
    /// Waits until a further bundle may be made, which is held in memory.
    pub(super) async fn wait_for_bundle(&self) -> Option<SemaphorePermit<'_>> {
        self.bundles.acquire().await.ok()
    }
}

/// The checkpoint of a save.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// `None` if the agent wants no checkpoints, or it failed.
    pub commit: Option<String>,
    /// Why it failed, or what the commit does not contain.
    pub warning: Option<String>,
}

/// Commits the workspace of the agent whose context is saved, if its settings ask for that.
pub(super) fn checkpoint_workspace(
    registry: &Arc<Registry>,
    draft: &SessionDraft,
) -> impl Future<Output = Checkpoint> + Send + use<> {
    let (registry, settings, trigger) = (registry.clone(), draft.settings.clone(), draft.trigger);
    let about = draft.description.clone();
    let conversation = draft.conversation.as_ref().map(|conversation| conversation.id);
    let conversation = ConversationKey::from_stored(settings.id, conversation);
    async move {
        if !settings.checkpoint_workspace || !has_files(&registry, &settings, conversation).await {
            return Checkpoint::default();
        }
        // Boxed: it needs a future of 15 kB, and most saves make no checkpoint.
        match Box::pin(commit_workspace(&registry, &settings, conversation, trigger, about.as_deref())).await {
            Ok(CheckpointCommit { commit, excluded_repositories: without }) => {
                let missing = missing_repositories_warning(&without);
                let stored = Box::pin(shared_workspace::store_checkpoints(&registry, &settings)).await;
                let warning = match stored {
                    Ok(noted) => {
                        let warnings: Vec<String> = missing.into_iter().chain(noted).collect();
                        (!warnings.is_empty()).then(|| warnings.join("; "))
                    }
                    Err(why) => {
                        tracing::warn!(agent = %settings.name, why, "cannot store a workspace for other nodes yet");
                        let why: String = why.lines().next().unwrap_or_default().chars().take(300).collect();
                        Some(format!("cannot store the workspace for other nodes yet: {why}"))
                    }
                };
                Checkpoint { commit: Some(commit), warning }
            }
            Err(why) => {
                let why: String = why.lines().next().unwrap_or_default().chars().take(300).collect();
                tracing::warn!(agent = %settings.name, why, "cannot commit a workspace with its session");
                Checkpoint { commit: None, warning: Some(format!("cannot commit the workspace: {why}")) }
            }
        }
    }
}

/// Returns false if the conversation is to have a worktree and has none, because it has used no files since it began or was
/// closed.
async fn has_files(registry: &Registry, settings: &AgentSettings, conversation: ConversationKey) -> bool {
    !works_in_worktree(settings, conversation) || has_worktree(registry, settings, conversation).await
}

/// Returns whether the worktree of a conversation is there.
pub(super) async fn has_worktree(registry: &Registry, settings: &AgentSettings, conversation: ConversationKey) -> bool {
    if !works_in_worktree(settings, conversation) {
        return false;
    }
    let row = registry.agents.conversations.get(conversation);
    let Some(name) = row.as_ref().and_then(|row| row.worktree.as_ref()) else { return false };
    let dir = settings.files_dir().join(worktree::WORKTREES_DIR).join(name);
    chorus_runtime::spawn_blocking(move || dir.symlink_metadata().is_ok()).await.unwrap_or(false)
}

/// Returns a warning with the repositories inside the workspace whose files are not in the commit.
fn missing_repositories_warning(without: &[String]) -> Option<String> {
    /// Maximum number of repositories that the warning names.
    const MAX_NAMED_REPOSITORIES: usize = 5;
    let more = if without.len() > MAX_NAMED_REPOSITORIES { ", …" } else { "" };
    let named = without.iter().take(MAX_NAMED_REPOSITORIES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let named: String = named.chars().take(300).collect();
    let why = "the commit does not include nested repositories";
    (!without.is_empty()).then(|| format!("{why}: {named}{more}"))
}

async fn commit_workspace(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
    conversation: ConversationKey,
    trigger: Trigger,
    about: Option<&str>,
) -> Result<CheckpointCommit, String> {
    let about = about.map_or_else(|| trigger.as_str().to_owned(), |about| about.replace(char::is_control, " "));
    let message: String = format!("Checkpoint: {about}").chars().take(MAX_MESSAGE_CHARS).collect();
    let cancel = CancellationToken::new();
    // If this future is dropped, the git command is ended too.
    let _ends = cancel.clone().drop_guard();
    let create = async {
        let ctx = tool_context(registry, settings, conversation, cancel.clone()).await;
        match &ctx.place {
            WorkingDirectory::Unavailable(why) => Err(why.clone()),
            // An agent that has come from another node, without its files, has no repository here.
            WorkingDirectory::Workspace if registry.store.ownership.is_some() => {
                prepare_repository(&ctx).await?;
                checkpoint::create_checkpoint(&ctx, &message).await
            }
            _ => checkpoint::create_checkpoint(&ctx, &message).await,
        }
    };
    let made = async {
        let _turn = match trigger {
            Trigger::IdleTimeout | Trigger::Shutdown => registry.checkpoint_limit.background.acquire().await.ok(),
            _ => None,
        };
        with_timeout(GIT_TIMEOUT, &cancel, create).await
    };
    match trigger {
        Trigger::Shutdown => with_timeout(SHUTDOWN_TIMEOUT, &cancel, made).await,
        _ => made.await,
    }
}

/// Runs `work` with a time limit, and cancels it after that.
pub(super) async fn with_timeout<T>(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let mut work = std::pin::pin!(work);
    if let Ok(made) = tokio::time::timeout(limit, &mut work).await {
        return made;
    }
    cancel.cancel();
    let late = tokio::time::timeout(CANCEL_TIMEOUT, work).await;
    // It may have completed in the meantime.
    late.ok().and_then(Result::ok).ok_or_else(|| "git timed out".to_owned())
}

/// Returns true if the conversation works in a git worktree, once it uses files.
#[must_use]
pub fn works_in_worktree(settings: &AgentSettings, conversation: ConversationKey) -> bool {
    settings.worktrees && !conversation.is_main()
}

/// Returns the tool context in which git runs outside of any turn, in the directory in which the conversation works.
pub async fn tool_context(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
    conversation: ConversationKey,
    cancel: CancellationToken,
) -> ToolContext {
    let mut ctx = workspace_context(registry, settings, conversation, cancel);
    if works_in_worktree(settings, conversation) {
        ctx.place = worktree::prepare(&ctx).await;
    }
    ctx
}

/// Returns the tool context in which git runs outside of any turn, in the agent's workspace.
pub fn workspace_context(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
    conversation: ConversationKey,
    cancel: CancellationToken,
) -> ToolContext {
    let profile = settings.profile.clone().unwrap_or_default();
    let now = settings.profile.clone().ok();
    ToolContext {
        agent: settings.id,
        agent_name: settings.name.clone(),
        conversation,
        conversation_name: registry.agents.conversations.name(conversation),
        dir: settings.dir.clone(),
        files_dir: settings.files_dir().to_owned(),
        place: WorkingDirectory::Workspace,
        turn: Uuid::nil(),
        project: settings.project.clone(),
        message: None,
        requester: Requester::Nobody,
        profile,
        mcp_servers: Vec::new(),
        current_profile: Box::new(move || now.clone()),
        redactor: settings.redact.then(|| registry.redactor.clone()),
        cancel,
        pausable_turn: None,
        approved_target: OnceLock::new(),
        emit_event: Box::new(|_| ()),
        services: registry.tools.clone(),
    }
}
