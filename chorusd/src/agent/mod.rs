//! Agents with something going on. A pure state machine decides ([`state`]), an actor carries out ([`actor`]), the
//! registry finds the actor or starts it ([`registry`]). An agent without a context has no actor: it costs a row.

pub mod accepts;
pub mod acknowledge;
pub mod actor;
pub mod again;
mod allowance;
mod answer;
mod batch;
mod call;
mod changes;
pub mod compaction;
pub mod context;
mod cut_off;
pub mod directory;
pub mod effect;
mod ended;
pub mod event;
mod exclusive;
pub mod extract;
pub mod idle;
#[cfg(test)]
mod idle_tests;
pub mod links;
mod load;
pub mod memories;
pub mod meter;
mod noted;
mod notes;
mod notice;
mod pairs;
pub mod precedence;
pub mod prepare;
pub mod prompt;
mod queue;
mod redacted;
pub mod registry;
pub mod rest;
mod room;
pub mod running;
pub mod save;
mod sent_again;
mod spent;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod summaries;
mod tool_calls;
mod trim;
pub mod turn;
pub mod voice;
pub mod window;
pub mod workspace;
mod write_down;

pub use call::no_model;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use uuid::Uuid;

use self::window::Budget;
use crate::permissions::Profile;
use crate::usage::Limits;

/// What the life of a context depends on besides its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
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
    pub window: Budget,
    /// What it may use in a day.
    pub limits: Limits,
    /// What it may do; without one that can be used, why: then it does nothing.
    pub profile: Result<Arc<Profile>, String>,
    /// Whether secrets are taken out of what it produces.
    pub redact: bool,
    /// Whether a save commits its workspace.
    pub checkpoint_workspace: bool,
    /// What it works on with others, whose memory it shares.
    pub project: Option<String>,
}

impl Facts {
    /// Its profile; nothing is allowed where that cannot be used.
    #[must_use]
    pub fn rules(&self) -> &Profile {
        static NOTHING: LazyLock<Profile> = LazyLock::new(Profile::default);
        self.profile.as_deref().unwrap_or(&NOTHING)
    }
}

impl Default for Facts {
    /// An agent without a name.
    fn default() -> Self {
        Self {
            id: Uuid::nil(),
            name: String::new(),
            dir: PathBuf::new(),
            model: None,
            idle_timeout: None,
            system_prompt: None,
            window: Budget { messages: 50, tokens: 15_000 },
            limits: Limits::default(),
            profile: Ok(Arc::default()),
            redact: true,
            checkpoint_workspace: false,
            project: None,
        }
    }
}
