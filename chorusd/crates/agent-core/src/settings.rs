//! The settings of an agent, as its state machine needs them.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use chorus_permissions::Profile;
use uuid::Uuid;

use super::window::WindowBudget;

/// The limits of an agent; 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageLimits {
    /// Input and output tokens per day.
    pub daily_tokens: u64,
    /// US dollars per day.
    pub daily_cost: f64,
}

/// Settings of an agent that its context and its turns depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    pub id: Uuid,
    pub name: String,
    /// Absolute path of the agent's directory.
    pub dir: PathBuf,
    /// Absolute path of the directory that has its workspace and the worktrees of its conversations, if the nodes of a cluster share
    /// that. `None`: they are in the agent's directory.
    pub shared_dir: Option<PathBuf>,
    /// `None`: the agent cannot answer.
    pub model: Option<String>,
    /// `None`: the context never expires.
    pub idle_timeout: Option<Duration>,
    pub system_prompt: Option<String>,
    /// How many messages and tokens of the conversation are sent to the model.
    pub window: WindowBudget,
    /// Daily usage limits.
    pub limits: UsageLimits,
    /// The permission profile, or the reason why it cannot be used. Without a profile the agent may do nothing.
    pub profile: Result<Arc<Profile>, String>,
    /// Whether secrets are redacted in what the agent produces.
    pub redact: bool,
    /// Whether a save commits the workspace to git.
    pub checkpoint_workspace: bool,
    /// The project whose memory this agent shares with other agents.
    pub project: Option<String>,
    /// The program whose imported conversations this agent holds.
    pub import_source: Option<String>,
    /// How many of its conversations may have a live context at once.
    pub max_conversations: u64,
    /// How many turns of its conversations run at the same time; further ones wait.
    pub concurrent_turns: u64,
    /// Tells if each conversation except `main` works in a git worktree of the workspace.
    pub worktrees: bool,
    /// How many passages of its past it recalls at the start of a window; 0: none.
    pub recall: u64,
    /// Names of the MCP servers whose tools it has.
    pub mcp: Vec<String>,
}

impl AgentSettings {
    /// Returns the settings with another model, or the same ones without.
    #[must_use]
    pub fn with_model(self: &Arc<Self>, model: Option<&str>) -> Arc<Self> {
        match model {
            Some(model) => Arc::new(Self { model: Some(model.to_owned()), ..Self::clone(self) }),
            None => self.clone(),
        }
    }

    /// Returns the directory that has the workspace and the worktrees of conversations.
    #[must_use]
    pub fn files_dir(&self) -> &Path {
        self.shared_dir.as_deref().unwrap_or(&self.dir)
    }

    /// Returns the path of the workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.files_dir().join("workspace")
    }

    /// Returns the permission profile, or an empty one, which allows nothing, if the profile cannot be used.
    #[must_use]
    pub fn permission_profile(&self) -> &Profile {
        static NOTHING: LazyLock<Profile> = LazyLock::new(Profile::default);
        self.profile.as_deref().unwrap_or(&NOTHING)
    }
}

impl Default for AgentSettings {
    /// Returns the settings of an agent that has no name.
    fn default() -> Self {
        Self {
            id: Uuid::nil(),
            name: String::new(),
            dir: PathBuf::new(),
            shared_dir: None,
            model: None,
            idle_timeout: None,
            system_prompt: None,
            window: WindowBudget { messages: 50, tokens: 15_000 },
            limits: UsageLimits::default(),
            profile: Ok(Arc::default()),
            redact: true,
            checkpoint_workspace: false,
            project: None,
            import_source: None,
            max_conversations: 100,
            concurrent_turns: 4,
            worktrees: false,
            recall: 0,
            mcp: Vec::new(),
        }
    }
}
