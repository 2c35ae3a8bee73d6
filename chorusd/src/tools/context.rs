//! Where a call is made, and what it may use.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use chorus_proto::methods::send::TurnEvent;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::agent_locks::AgentLocks;
use super::{FileLocks, ToolHost};
use crate::approvals::Approvals;
use crate::clock::Clock;
use crate::llm::Models;
use crate::permissions::Profile;
use crate::redact::Redactor;
use crate::requester::Requester;
use crate::sandbox::Sandbox;
use crate::store::Store;
use crate::tasks::Tasks;

/// What all calls share.
#[derive(Debug)]
pub struct ToolServices {
    pub models: Arc<Models>,
    pub store: Arc<Store>,
    pub clock: Clock,
    pub approvals: Approvals,
    pub sandbox: Sandbox,
    /// Of files that are being written.
    pub file_locks: FileLocks,
    /// Commands in the background.
    pub tasks: Tasks,
    /// One command of git at a time in a workspace.
    pub git_locks: AgentLocks,
    /// One note at a time.
    pub docs_locks: AgentLocks,
    /// Set once everything is there.
    pub host: OnceLock<Weak<dyn ToolHost>>,
}

/// One turn of one agent, as a call in it sees that.
pub struct ToolContext {
    pub agent: Uuid,
    pub agent_name: String,
    /// What it works on with others.
    pub project: Option<String>,
    /// The agent's directory, absolute.
    pub dir: PathBuf,
    pub turn: Uuid,
    /// The message that has the call in it.
    pub message: Option<String>,
    /// Who asked for the turn.
    pub requester: Requester,
    /// As it is now: a change in this turn holds from the next call on.
    pub profile: Arc<Profile>,
    /// The same, read when it is called; `None`: the agent is gone.
    pub current_profile: Box<dyn Fn() -> Option<Arc<Profile>> + Send + Sync>,
    /// What keeps secrets out of what is written down; `None`: this agent keeps everything.
    pub redactor: Option<Arc<Redactor>>,
    /// The turn is to end.
    pub cancel: CancellationToken,
    /// Where it leads, as whoever approved it was told.
    pub approved_target: OnceLock<String>,
    /// Tells whoever listens to the turn.
    pub emit_event: Box<dyn Fn(TurnEvent) + Send + Sync>,
    pub services: Arc<ToolServices>,
}

/// A text as it is kept, with what the model is told where it is not what it wrote.
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
    /// `approval_timeout`: how long a question stays open. `places`: the daemon's program, and its home.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        models: Arc<Models>,
        clock: Clock,
        approval_timeout: Duration,
        (program, home): (&Path, &Path),
    ) -> Arc<Self> {
        let approvals = Approvals::new(store.clone(), clock.clone(), approval_timeout, models.redactor().clone());
        let tasks = Tasks::new(store.clone(), clock.clone());
        Arc::new(Self {
            models,
            store,
            clock,
            approvals,
            sandbox: Sandbox::new(program, home),
            file_locks: FileLocks::default(),
            tasks,
            git_locks: AgentLocks::default(),
            docs_locks: AgentLocks::default(),
            host: OnceLock::new(),
        })
    }

    /// The rest of the daemon; `None` while it comes up or goes down.
    #[must_use]
    pub fn host(&self) -> Option<Arc<dyn ToolHost>> {
        self.host.get()?.upgrade()
    }
}

impl ToolContext {
    /// Whether a call leads where it did when somebody was asked about it.
    ///
    /// # Errors
    /// That it does not, for the model.
    pub fn check_target_unchanged(&self, place: &str) -> Result<(), String> {
        match self.approved_target.get() {
            Some(agreed) if agreed != place => {
                Err(format!("it was approved for {agreed}, and leads to {place} by now; nothing was done"))
            }
            _ => Ok(()),
        }
    }

    /// Whether commands have the network, as the profile says by now: somebody may have been asked for a while.
    #[must_use]
    pub fn allows_network(&self) -> bool {
        (self.current_profile)().is_some_and(|profile| profile.allows_network())
    }

    /// The agent's workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    /// What the model wrote, as it is kept for later: without secrets, unless this agent keeps everything.
    #[must_use]
    pub fn redact_for_storage(&self, text: String) -> StoredText {
        let clean = self.redactor.as_ref().and_then(|redactor| match redactor.redact_text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        });
        match clean {
            Some(text) => {
                StoredText { text, note: "; the secrets in it were replaced, as they are wherever they would be kept" }
            }
            None => StoredText { text, note: "" },
        }
    }

    /// Whether a secret in `text` must not be kept.
    #[must_use]
    pub fn has_secret(&self, text: &str) -> bool {
        self.redactor.as_ref().is_some_and(|redactor| redactor.count_secrets(text) > 0)
    }
}
