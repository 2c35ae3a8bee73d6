//! Agents with something going on. A pure state machine decides ([`state`]), an actor carries out ([`actor`]), the
//! registry finds the actor or starts it ([`registry`]). An agent without a context has no actor: it costs a row.

pub mod actor;
mod changes;
pub mod context;
pub mod directory;
pub mod effect;
mod ended;
pub mod event;
pub mod idle;
#[cfg(test)]
mod idle_tests;
mod load;
mod notice;
pub mod registry;
pub mod rest;
pub mod save;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod summaries;
pub mod window;

use std::path::PathBuf;
use std::time::Duration;

use uuid::Uuid;

use crate::usage::Limits;

/// What the life of a context depends on besides its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub id: Uuid,
    pub name: String,
    /// The agent's directory, absolute.
    pub dir: PathBuf,
    pub model: Option<String>,
    /// `None`: the context is never put away by itself.
    pub idle_timeout: Option<Duration>,
    /// What it may use in a day.
    pub limits: Limits,
}
