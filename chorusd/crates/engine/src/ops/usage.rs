//! The operation `usage`.

use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_proto::methods::usage::{UsageDay, UsageParams, UsageResult, UsageSums};
use chorus_store::catalog::{UsageFilter, UsageTable, UsageTotals};

use super::context::history::parse_since;
use super::resolve_agent;
use crate::agent::agent_index::AgentIndex;
use crate::usage::UsageTracker;

/// Sums the usage of model calls by day, agent and model. Days are those of the daemon's time zone.
pub async fn usage(
    agents: &AgentIndex,
    table: &UsageTable,
    tracker: &UsageTracker,
    clock: &Clock,
    params: UsageParams,
) -> Result<UsageResult> {
    let since = params.since.as_deref().map(|text| parse_since(text, clock.now())).transpose()?;
    let agents = match &params.agent {
        Some(name) => agents_named(agents, table, name).await?,
        None => Vec::new(),
    };
    let rows = table.list_daily(UsageFilter { agents, since, zone: tracker.time_zone().clone() }).await?;
    let mut total = UsageTotals::default();
    let days = rows.into_iter().map(|row| {
        total.add(&row.sums);
        UsageDay { day: row.day, agent: row.agent_name, model: row.model, sums: to_usage_sums(&row.sums) }
    });
    Ok(UsageResult { days: days.collect(), total: to_usage_sums(&total) })
}

/// Returns the ids of the agent with this name, or of destroyed agents that had it, whose usage still counts.
async fn agents_named(agents: &AgentIndex, table: &UsageTable, name: &str) -> Result<Vec<uuid::Uuid>> {
    if let Some(entry) = agents.by_name(name) {
        return Ok(vec![entry.settings.id]);
    }
    let before = table.agents_named(name.to_owned()).await?;
    if before.is_empty() { Err(resolve_agent::unknown_agent_error(agents, name)) } else { Ok(before) }
}

fn to_usage_sums(sums: &UsageTotals) -> UsageSums {
    UsageSums {
        calls: sums.calls,
        input_tokens: sums.input,
        output_tokens: sums.output,
        cache_read_tokens: sums.cache_read,
        cost_usd: sums.known_cost(),
        unpriced_calls: sums.unpriced,
        estimated_calls: sums.by_estimate,
    }
}
