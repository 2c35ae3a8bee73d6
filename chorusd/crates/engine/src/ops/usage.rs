//! The operation `usage`.

mod grouped;
mod price_gaps;

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{Catalog, UsageFilter, UsageTable, UsageTotals};
use chorus_clock::Clock;
use chorus_llm::Models;
use chorus_proto::methods::usage::{UsageBy, UsageDay, UsageParams, UsageResult, UsageSums};
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::price_gaps::PriceGaps;
use super::context::history::parse_since;
use super::resolve_agent;
use crate::agent::agent_index::AgentIndex;
use crate::usage::UsageTracker;

/// Sums the usage of model calls by day, agent and model, and by conversation if that is asked for; or that of our own
/// agents and of imported conversations by program. Days are those of the daemon's time zone.
pub async fn usage(
    agents: &AgentIndex,
    catalog: &Catalog,
    tracker: &UsageTracker,
    models: &Models,
    clock: &Clock,
    params: UsageParams,
) -> Result<UsageResult> {
    let zone = tracker.time_zone().clone();
    let since = params.since.as_deref().map(|text| parse_whole_days(text, clock.now(), &zone)).transpose()?;
    let ids = match &params.agent {
        Some(name) => agents_named(agents, &catalog.usage, name).await?,
        None => Vec::new(),
    };
    let by_conversation = params.by == Some(UsageBy::Conversation);
    let filter = UsageFilter { agents: ids, since, zone, by_conversation };
    if let Some(by) = params.by.filter(|_| !by_conversation) {
        return grouped::usage((catalog, models), by, filter).await;
    }
    let imported = filter.clone();
    let rows = catalog.usage.list_daily(filter).await?;
    let mut total = UsageTotals::default();
    let mut gaps = PriceGaps::default();
    let days = rows.into_iter().map(|row| {
        total.add(&row.sums);
        gaps.add_own(models, &row.model, &row.sums);
        let conversation = by_conversation.then(|| {
            let key = ConversationKey::from_stored(row.agent_id, row.conversation_id);
            let name = agents.conversations.name(key);
            name.unwrap_or_else(|| if key.is_main() { MAIN_CONVERSATION.to_owned() } else { key.id.to_string() })
        });
        let sums = to_usage_sums(&row.sums);
        UsageDay { day: row.day, agent: row.agent_name, conversation, model: row.model, sums }
    });
    let days = days.collect();
    let has_imported = !catalog.imported_usage.is_empty().await?;
    let imported_calls = if has_imported { grouped::count_imported_calls(catalog, imported).await? } else { 0 };
    Ok(UsageResult {
        days,
        groups: Vec::new(),
        total: to_usage_sums(&total),
        has_imported,
        imported_calls,
        unpriced_models: gaps.unpriced_models(),
        cached_as_input: gaps.cached_as_input(),
    })
}

/// Parses a time as [`parse_since`] does; a number of days or weeks starts with the midnight before, so that the first day is not
/// cut.
fn parse_whole_days(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp> {
    let since = parse_since(text, now)?;
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    let is_whole =
        unit.len() < text.trim().len() && matches!(unit.trim(), "d" | "day" | "days" | "w" | "week" | "weeks");
    let midnight = || since.to_zoned(zone.clone()).start_of_day().ok().map(|start| start.timestamp());
    Ok(is_whole.then(midnight).flatten().unwrap_or(since))
}

/// Returns the ids of the agent with this name, or of destroyed agents that had it, whose usage still counts.
async fn agents_named(agents: &AgentIndex, table: &Arc<dyn UsageTable>, name: &str) -> Result<Vec<uuid::Uuid>> {
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
        lower_bound_calls: sums.lower_bound,
    }
}
