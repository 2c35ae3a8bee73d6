//! `agent.*`.

pub mod config;
pub mod destroy;
pub mod export;
pub mod import;
pub mod init;
pub mod list;
mod refresh;
pub mod room;
pub mod show;
pub mod use_;
mod workspace;

use std::path::Path;

use chorus_proto::{AgentStatus, ErrorKind};
pub use refresh::{refresh, refresh_all, refresh_alone};
use serde_json::Value;

use crate::agent::Facts;
use crate::agent::directory::Entry;
use crate::agent::window::Budget;
use crate::config::agent::AgentConfig;
use crate::failure::{Failure, Result};
use crate::ops::Ops;
use crate::store::catalog::AgentRow;
use crate::usage::Limits;
use crate::who::Requester;

/// Where active agents live, below the home.
pub const AGENTS: &str = "agents";

/// The directory entry of an agent whose agent.json is `config`.
#[must_use]
pub fn entry(home: &Path, dir: &str, config: &AgentConfig, stamp: String) -> Entry {
    Entry {
        facts: std::sync::Arc::new(Facts {
            id: config.id,
            name: config.name.clone(),
            dir: home.join(dir),
            model: config.model.clone(),
            idle_timeout: config.idle_timeout,
            system_prompt: config.system_prompt.clone(),
            window: Budget {
                messages: usize::try_from(config.window_messages).unwrap_or(usize::MAX),
                tokens: config.compact_at_tokens,
            },
            profile: config.profile.clone(),
            redact: config.redact,
            checkpoint_workspace: config.checkpoint_workspace,
            project: config.project.clone(),
            limits: Limits { daily_tokens: config.daily_token_limit, daily_cost: config.daily_cost_limit },
        }),
        permissions: config.permissions.clone(),
        created_at: config.created_at,
        channel_id: config.channel_id.clone(),
        guild_id: config.guild_id.clone(),
        stamp,
        problem: config.profile.as_ref().err().map(|problem| format!("agent.json {problem}")),
    }
}

/// The row of an active agent.
#[must_use]
pub fn row(dir: &str, config: &AgentConfig, stamp: String) -> AgentRow {
    AgentRow {
        id: config.id,
        name: config.name.clone(),
        status: AgentStatus::Active,
        created_at: config.created_at,
        dir: dir.to_owned(),
        // In force, with the defaults of today: the file itself may say null.
        config: config.to_json(),
        stamp,
        sessions: 0,
    }
}

/// Whether `by` may give agents these permissions.
///
/// # Errors
/// `denied`, with what they may grant.
pub(in crate::ops) fn may_grant(ops: &Ops, by: &Requester, permissions: &Value) -> Result<()> {
    ops.config.grants.may(by, permissions).map_err(|why| {
        Failure::new(ErrorKind::Denied, why)
            .hint("`[permission_grants]` of the configuration says which role grants what")
    })
}

/// A JSON null for nothing, else a text.
fn text_or_null(text: Option<String>) -> Option<Value> {
    text.map(Value::String)
}
