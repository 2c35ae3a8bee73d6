//! Agents with something going on. A pure state machine decides ([`state`]), an actor carries out ([`actor`]), the
//! registry finds the actor or starts it ([`registry`]). An agent without a context has no actor: it costs a row.

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

/// What the life of a context depends on besides its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    pub id: Uuid,
    pub name: String,
    /// The agent's directory, absolute.
    pub dir: PathBuf,
    /// `None`: the agent answers nobody.
    pub model: Option<String>,
    /// `None`: the context is never put away by itself.
    pub idle_timeout: Option<Duration>,
    pub system_prompt: Option<String>,
    /// How much of the conversation the model is shown.
    pub window: WindowBudget,
    /// What it may use in a day.
    pub limits: UsageLimits,
    /// What it may do; without one that can be used, why: then it does nothing.
    pub profile: Result<Arc<Profile>, String>,
    /// Whether secrets are taken out of what it produces.
    pub redact: bool,
    /// Whether a save commits its workspace.
    pub checkpoint_workspace: bool,
    /// What it works on with others, whose memory it shares.
    pub project: Option<String>,
}

impl AgentSettings {
    /// Its profile; nothing is allowed where that cannot be used.
    #[must_use]
    pub fn permission_profile(&self) -> &Profile {
        static NOTHING: LazyLock<Profile> = LazyLock::new(Profile::default);
        self.profile.as_deref().unwrap_or(&NOTHING)
    }
}

impl Default for AgentSettings {
    /// An agent without a name.
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
