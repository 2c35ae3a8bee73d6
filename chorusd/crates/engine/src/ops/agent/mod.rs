//! The operations `agent.*`.

mod claimed_workspace;
mod claims;
pub mod config;
mod dead_nodes;
mod describer;
pub mod destroy;
pub mod discord_channel;
mod editor;
pub mod export;
mod failed_adoptions;
pub mod import;
mod import_agents;
pub mod init;
pub mod list;
mod moves;
mod owner_hints;
mod resolver;
pub mod show;
pub mod use_;
mod workspace_bundle;
mod workspace_notice;

use std::path::Path;

use chorus_agent_core::window::WindowBudget;
use chorus_agent_core::{AgentSettings, UsageLimits};
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::AgentRow;
use chorus_config::agent::AgentConfig;
use chorus_config::{Config, WorkspaceMode};
use chorus_proto::{AgentStatus, ErrorKind};
use serde_json::Value;

use crate::agent::agent_index::AgentEntry;
pub use claims::AgentClaims;
pub use describer::AgentDescriber;
pub use editor::AgentEditor;
pub use export::AgentExporter;
pub use failed_adoptions::FailedAdoptions;
pub use import_agents::ImportAgents;
pub use moves::AgentMoves;
pub use owner_hints::OwnerHints;
pub use resolver::AgentResolver;

/// The directory of active agents, relative to the home.
pub const AGENTS_DIR: &str = "agents";

/// Builds the index entry of an agent from its configuration.
#[must_use]
pub fn agent_entry(home: &Path, dir: &str, config: &AgentConfig, stamp: String) -> AgentEntry {
    AgentEntry {
        settings: std::sync::Arc::new(AgentSettings {
            id: config.id,
            name: config.name.clone(),
            dir: home.join(dir),
            shared_dir: config.shared_dir.clone(),
            model: config.model.clone(),
            idle_timeout: config.idle_timeout,
            system_prompt: config.system_prompt.clone(),
            window: WindowBudget {
                messages: usize::try_from(config.window_messages).unwrap_or(usize::MAX),
                tokens: config.compact_at_tokens,
            },
            profile: config.profile.clone(),
            redact: config.redact,
            checkpoint_workspace: config.checkpoint_workspace,
            project: config.project.clone(),
            import_source: config.import_source.clone(),
            max_conversations: config.max_conversations,
            concurrent_turns: config.concurrent_turns,
            worktrees: config.workspace == WorkspaceMode::Worktree,
            recall: config.recall,
            mcp: config.mcp.clone(),
            limits: UsageLimits { daily_tokens: config.daily_token_limit, daily_cost: config.daily_cost_limit },
        }),
        permissions: config.permissions.clone(),
        created_at: config.created_at,
        channel_id: config.channel_id.clone(),
        guild_id: config.guild_id.clone(),
        config_stamp: stamp,
        config_problem: config.profile.as_ref().err().map(|problem| format!("agent.json {problem}")),
    }
}

/// Builds the row of an active agent.
#[must_use]
pub fn agent_row(dir: &str, config: &AgentConfig, stamp: String) -> AgentRow {
    AgentRow {
        id: config.id,
        name: config.name.clone(),
        status: AgentStatus::Active,
        created_at: config.created_at,
        dir: dir.to_owned(),
        // The effective configuration with today's defaults; the file itself may have null.
        config: config.to_json(),
        stamp,
        sessions: 0,
    }
}

/// Checks that `by` may grant these permissions to agents; otherwise fails with `denied` and names what they may grant.
pub(in crate::ops) fn ensure_may_grant(config: &Config, by: &Requester, permissions: &Value) -> Result<()> {
    config.grants.check_grant(by, permissions).map_err(|why| {
        Error::new(ErrorKind::Denied, why).hint("roles and what they may grant: [permission_grants] in config.toml")
    })
}

fn text_or_null(text: Option<String>) -> Option<Value> {
    text.map(Value::String)
}
