//! The operations `audit` and `audit.verify`.

pub mod verify;

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::hex;
use chorus_catalog::{AuditEntry, AuditFilter, AuditLog};
use chorus_clock::Clock;
use chorus_proto::methods::audit::{AuditParams, AuditResult, AuditRow};

use super::context::history::parse_since;
use super::resolve_agent;
use crate::agent::agent_index::AgentIndex;

/// Returns a page of the audit log, the newest row last.
pub async fn audit(
    agents: &AgentIndex,
    log: &Arc<dyn AuditLog>,
    clock: &Clock,
    params: AuditParams,
) -> Result<AuditResult> {
    let since = params.since.as_deref().map(|text| parse_since(text, clock.now())).transpose()?;
    let agents = match &params.agent {
        Some(name) => agents_named(agents, log, name).await?,
        None => Vec::new(),
    };
    let after = i64::try_from(params.after.unwrap_or(0)).unwrap_or(i64::MAX);
    let filter = AuditFilter { agents, since, after, limit: params.limit.map(|limit| limit.min(i64::MAX as u64)) };
    let (rows, more) = log.page(filter).await?;
    let rows: Vec<AuditRow> = rows.into_iter().map(to_audit_row).collect();
    let next = rows.last().map(|row| row.id).filter(|_| more);
    Ok(AuditResult { rows, next })
}

/// Returns the ids of all agents that have this name, or had it when a row was written.
async fn agents_named(agents: &AgentIndex, log: &Arc<dyn AuditLog>, name: &str) -> Result<Vec<uuid::Uuid>> {
    let mut ids = log.agents_named(name.to_owned()).await?;
    let now = agents.by_name(name).map(|entry| entry.settings.id);
    ids.extend(now.filter(|id| !ids.contains(id)));
    if ids.is_empty() { Err(resolve_agent::unknown_agent_error(agents, name)) } else { Ok(ids) }
}

fn to_audit_row(entry: AuditEntry) -> AuditRow {
    let AuditEntry { id, row, hash } = entry;
    AuditRow {
        id: u64::try_from(id).unwrap_or(0),
        at: row.at,
        agent_id: row.agent,
        agent: row.agent_name,
        turn_id: row.turn,
        action: row.action,
        decision: row.decision,
        rule: row.rule,
        user: row.user,
        old: row.old,
        new: row.new,
        hash: hex(&hash),
    }
}
