//! Converts catalog rows and index entries into the types of the protocol.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_config::agent::AgentConfig;
use chorus_proto::{Agent, AgentState, AgentStatus, ContextInfo, SessionRef, TodayUsage};
use chorus_store::catalog::{AgentRow, SessionRow};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Ops;
use crate::agent::agent_index::AgentEntry;
use crate::usage::Spending;

/// Converts entries into agents, each with its live context and its newest session.
pub fn agents<'a>(ops: &'a Ops, entries: &'a [Arc<AgentEntry>]) -> BoxFuture<'a, Result<Vec<Agent>>> {
    Box::pin(async move {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = entries.iter().map(|entry| entry.settings.id).collect();
        let last = ops.store.catalog.sessions.newest_of_each(ids).await?;
        let today = ops.usage.today_totals().await?;
        let shown: Vec<Uuid> = last.iter().flatten().map(|row| row.header.id).collect();
        let mut short = ops.store.catalog.sessions.short_ids(shown).await?.into_iter();
        let infos = match entries {
            // Faster than all, and one agent is requested more often.
            [one] => {
                ops.registry.context_info(one.settings.id).map(|info| (one.settings.id, info)).into_iter().collect()
            }
            _ => ops.registry.context_infos(),
        };
        let mut meters = ops.context_meter.measure(entries).await?;
        Ok(entries
            .iter()
            .zip(last)
            .map(|(entry, last)| {
                let last = last.map(|row| to_session_ref(row, short.next().unwrap_or_default()));
                let used = today.get(&entry.settings.id).map(to_today_usage);
                let meter = meters.remove(&entry.settings.id);
                let context = infos.get(&entry.settings.id).cloned().map(|info| ContextInfo { meter, ..info });
                active_agent(ops, entry, context, last, used)
            })
            .collect())
    })
}

/// Converts one entry as [`agents`] does.
pub async fn agent(ops: &Ops, entry: &Arc<AgentEntry>) -> Result<Agent> {
    let mut agents = agents(ops, std::slice::from_ref(entry)).await?;
    agents.pop().ok_or_else(|| chorus_base::error::Error::internal("an agent was lost on its way"))
}

/// Converts an agent that was just created or changed. A failed lookup must not look like a failed change, so it
/// returns the agent without its newest session then.
pub async fn changed_agent(ops: &Ops, entry: &Arc<AgentEntry>) -> Agent {
    match agent(ops, entry).await {
        Ok(agent) => agent,
        Err(failure) => {
            tracing::warn!(agent = %entry.settings.name, %failure, "an agent's newest session cannot be looked up");
            active_agent(ops, entry, ops.registry.context_info(entry.settings.id), None, None)
        }
    }
}

fn active_agent(
    ops: &Ops,
    entry: &AgentEntry,
    context: Option<ContextInfo>,
    last_session: Option<SessionRef>,
    today: Option<TodayUsage>,
) -> Agent {
    Agent {
        id: entry.settings.id,
        name: entry.settings.name.clone(),
        status: AgentStatus::Active,
        state: if context.is_some() { AgentState::Active } else { AgentState::Idle },
        model: entry.settings.model.clone(),
        permissions: entry.permissions.clone(),
        created_at: entry.created_at,
        channel_id: entry.channel_id.clone(),
        guild_id: entry.guild_id.clone(),
        path: entry.settings.dir.to_string_lossy().into_owned(),
        context,
        last_session,
        today,
        turn: ops.registry.running.status(entry.settings.id, ops.clock.ticks()),
        approvals: ops.approvals.count_open(entry.settings.id),
        problem: entry.config_problem.clone(),
    }
}

/// Converts the row of a destroyed agent.
#[must_use]
pub fn destroyed_agent(ops: &Ops, row: &AgentRow) -> Agent {
    let config: serde_json::Value = serde_json::from_str(&row.config).unwrap_or_default();
    let text = |key: &str| config.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    // agent.json has null where defaults apply.
    let permissions = match AgentConfig::parse(&row.config, &ops.defaults()) {
        Ok(config) => config.permissions,
        Err(_) => config.get("permissions").cloned().unwrap_or_default(),
    };
    Agent {
        id: row.id,
        name: row.name.clone(),
        status: AgentStatus::Destroyed,
        state: AgentState::Destroyed,
        model: text("model"),
        permissions,
        created_at: row.created_at,
        channel_id: text("channel_id"),
        guild_id: text("guild_id"),
        path: ops.home.join(&row.dir).to_string_lossy().into_owned(),
        context: None,
        last_session: None,
        today: None,
        turn: None,
        approvals: 0,
        problem: None,
    }
}

fn to_today_usage(spent: &Spending) -> TodayUsage {
    TodayUsage {
        tokens: spent.tokens,
        cost_usd: (spent.unpriced < spent.calls).then_some(spent.cost),
        calls: spent.calls,
        unpriced_calls: spent.unpriced,
    }
}

fn to_session_ref(row: SessionRow, short_id: String) -> SessionRef {
    SessionRef {
        id: row.header.id,
        short_id,
        session_id: row.header.session_id,
        saved_at: row.header.saved_at,
        description: row.header.description,
        summary: row.header.summary,
        message_count: row.header.message_count,
    }
}
