//! Active agents. A pure state machine ([`state`]) decides what happens, an actor ([`actor`]) does the I/O, and the
//! registry ([`registry`]) finds an agent's actor or starts it. An agent without a context has no actor and costs only
//! a row in the catalog.

pub mod actor;
mod agent_docs;
pub mod agent_index;
mod background_extraction;
pub mod compaction;
pub mod context;
mod context_edits;
mod context_ops;
pub mod continuation;
pub mod effect;
pub mod event;
pub mod eviction;
mod exclusive_results;
pub mod expiry;
#[cfg(test)]
mod expiry_tests;
mod extraction_result;
mod idle_notice;
mod interruption;
mod journal_trim;
mod loading;
pub mod memory_prompt;
mod model_call;
pub mod model_limits;
mod model_reply;
pub mod note_extraction;
pub mod opening_message;
mod overflow_hint;
pub mod prompt;
pub mod prompt_size;
mod recovery;
mod redacted_stream;
pub mod registry;
pub mod request_builder;
mod resent_message;
pub mod running_turns;
pub mod save;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod summaries;
mod tool_budget;
mod tool_calls;
mod tool_pairing;
mod tool_runner;
pub mod turn;
pub mod turn_priority;
mod turn_queue;
pub mod turn_resumption;
pub mod turn_stream;
mod usage_sum;
pub mod window;
pub mod workspace_checkpoint;

pub use model_call::no_model_error;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use uuid::Uuid;

use self::window::WindowBudget;
use crate::permissions::Profile;
use crate::usage::UsageLimits;

/// Settings of an agent that its context and its turns depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    pub id: Uuid,
    pub name: String,
    /// Absolute path of the agent's directory.
    pub dir: PathBuf,
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
}

impl AgentSettings {
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
            model: None,
            idle_timeout: None,
            system_prompt: None,
            window: WindowBudget { messages: 50, tokens: 15_000 },
            limits: UsageLimits::default(),
            profile: Ok(Arc::default()),
            redact: true,
            checkpoint_workspace: false,
            project: None,
        }
    }
}
