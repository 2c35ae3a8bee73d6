//! The context of a tool call, and the services that it may use.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use chorus_base::requester::Requester;
use chorus_clock::Clock;
use chorus_llm::Models;
use chorus_mcp_client::McpServers;
use chorus_permissions::Profile;
use chorus_proto::methods::send::TurnEvent;
use chorus_redact::Redactor;
use chorus_sandbox::{Confinement, ResourceLimits, Sandbox};
use chorus_session::conversation::ConversationKey;
use chorus_store::Store;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::files::{CommandGuard, ConversationFiles, FileLocks, FileVersions};
use super::git::worktree::KnownWorktrees;
use super::{ToolHost, WorkingDirectory};
use crate::KeyedMutex;
use crate::approvals::Approvals;
use crate::tasks::Tasks;

/// A turn as a tool call sees it: while it waits for a person or another agent, other turns of the agent may run.
pub trait PausableTurn: std::fmt::Debug + Send + Sync {
    /// Gives the right to run back.
    fn pause(&self);
    /// Waits until the turn has the right to run again or is cancelled.
    fn resume(&self) -> BoxFuture<'_, ()>;
}

/// Services that all tool calls share.
#[derive(Debug)]
pub struct ToolServices {
    pub models: Arc<Models>,
    pub store: Arc<Store>,
    pub clock: Clock,
    pub approvals: Arc<Approvals>,
    pub sandbox: Arc<Sandbox>,
    pub redactor: Arc<Redactor>,
    /// MCP servers whose tools agents use.
    pub mcp: Arc<McpServers>,
    /// Locks of files that are being written.
    pub file_locks: FileLocks,
    /// The versions of files that conversations have seen.
    pub file_versions: Arc<FileVersions>,
    /// Background tasks.
    pub tasks: Tasks,
    /// Admits one git command at a time per workspace.
    pub git_locks: Arc<KeyedMutex<Uuid>>,
    /// Worktrees that were checked since the start.
    pub worktrees: KnownWorktrees,
    /// Admits one change of docs/ at a time per agent.
    pub docs_locks: KeyedMutex<Uuid>,
    /// Set once the daemon is complete.
    pub host: OnceLock<Weak<dyn ToolHost>>,
}

/// The turn of an agent, as seen by a tool call in it.
pub struct ToolContext {
    pub agent: Uuid,
    pub agent_name: String,
    /// The conversation that the turn belongs to.
    pub conversation: ConversationKey,
    /// Its name; `None` for `main`.
    pub conversation_name: Option<String>,
    /// The project that the agent shares with others.
    pub project: Option<String>,
    /// The agent's directory, as an absolute path.
    pub dir: PathBuf,
    /// The directory that has its workspace and the worktrees of its conversations.
    pub files_dir: PathBuf,
    /// The directory in which the tools work.
    pub place: WorkingDirectory,
    pub turn: Uuid,
    /// The message that contains the call.
    pub message: Option<String>,
    /// The requester of the turn.
    pub requester: Requester,
    /// The profile at the time of the call; a change in this turn applies from the next call on.
    pub profile: Arc<Profile>,
    /// The MCP servers whose tools the agent has.
    pub mcp_servers: Vec<String>,
    /// Reads the current profile; returns `None` if the agent does not exist any more.
    pub current_profile: Box<dyn Fn() -> Option<Arc<Profile>> + Send + Sync>,
    /// Replaces secrets in what is stored; `None` if this agent may store them.
    pub redactor: Option<Arc<Redactor>>,
    /// Cancelled when the turn is to end.
    pub cancel: CancellationToken,
    /// The turn, which others of the agent need not wait for while it asks a person or another agent; `None` outside of
    /// turns.
    pub pausable_turn: Option<Arc<dyn PausableTurn>>,
    /// The effective target that was shown in the approval prompt.
    pub approved_target: OnceLock<String>,
    /// Sends an event to the listeners of the turn.
    pub emit_event: Box<dyn Fn(TurnEvent) + Send + Sync>,
    pub services: Arc<ToolServices>,
}

/// A text as it is stored, with a note for the model if it differs from what the model wrote.
#[derive(Debug)]
pub struct StoredText {
    pub text: String,
    pub note: &'static str,
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("agent", &self.agent_name).field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl ToolServices {
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        models: Arc<Models>,
        clock: Clock,
        approvals: Arc<Approvals>,
        tasks: Tasks,
        (sandbox, redactor, mcp): (Arc<Sandbox>, Arc<Redactor>, Arc<McpServers>),
        file_versions: Arc<FileVersions>,
    ) -> Arc<Self> {
        Arc::new(Self {
            models,
            store,
            clock,
            approvals,
            sandbox,
            redactor,
            mcp,
            file_locks: FileLocks::default(),
            file_versions,
            tasks,
            git_locks: Arc::default(),
            worktrees: KnownWorktrees::default(),
            docs_locks: KeyedMutex::default(),
            host: OnceLock::new(),
        })
    }

    /// Returns the rest of the daemon; `None` while it starts or stops.
    #[must_use]
    pub fn host(&self) -> Option<Arc<dyn ToolHost>> {
        self.host.get()?.upgrade()
    }
}

impl ToolContext {
    /// Waits for `answer`, during which other turns of the agent may run.
    pub async fn pause_for<T>(&self, answer: impl Future<Output = T>) -> T {
        let Some(turn) = &self.pausable_turn else { return answer.await };
        turn.pause();
        let answer = answer.await;
        turn.resume().await;
        answer
    }

    /// Checks that the effective target of a call is still the one that was approved.
    pub fn check_target_unchanged(&self, place: &str) -> Result<(), String> {
        match self.approved_target.get() {
            Some(agreed) if agreed != place => {
                Err(format!("it was approved for {agreed}, but now leads to {place}; nothing was done"))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if commands may use the network by the current profile, which may have changed during an approval.
    #[must_use]
    pub fn allows_network(&self) -> bool {
        (self.current_profile)().is_some_and(|profile| profile.allows_network())
    }

    /// Returns the directory in which the tools work: the agent's workspace, or the worktree of the conversation.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.place.path(&self.files_dir)
    }

    /// Returns what a command of the conversation may access and use.
    ///
    /// # Errors
    /// The reason why the repository of its worktree cannot be used.
    pub async fn confinement(&self, network: bool, limits: ResourceLimits) -> Result<Confinement, String> {
        let shared = match self.place.worktree() {
            Some(worktree) => worktree.shared_paths().await?,
            None => Vec::new(),
        };
        let git_author = Some(self.agent_name.clone());
        Ok(Confinement { workspace: self.workspace(), shared, git_author, network, limits })
    }

    /// Returns the files as the conversation sees them; `None` if it shares them with no other one.
    #[must_use]
    pub fn conversation_files(&self) -> Option<ConversationFiles<'_>> {
        self.place.is_shared().then(|| self.services.file_versions.of(self.conversation))
    }

    /// Notes that a command of the conversation runs, if it may change files of other ones.
    ///
    /// # Errors
    /// As [`FileVersions::start_command`].
    pub async fn start_command(&self) -> Result<Option<CommandGuard>, String> {
        match self.place.is_shared() {
            true => self.services.file_versions.start_command(self.conversation).await.map(Some),
            false => Ok(None),
        }
    }

    /// Replaces the secrets in a text that is to be stored, unless this agent may store them.
    #[must_use]
    pub fn redact_for_storage(&self, text: String) -> StoredText {
        let clean = self.redactor.as_ref().and_then(|redactor| match redactor.redact_text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        });
        match clean {
            Some(text) => StoredText { text, note: "; secrets in it were redacted" },
            None => StoredText { text, note: "" },
        }
    }

    /// Returns true if `text` contains a secret that must not be stored.
    #[must_use]
    pub fn has_secret(&self, text: &str) -> bool {
        self.redactor.as_ref().is_some_and(|redactor| redactor.count_secrets(text) > 0)
    }
}
