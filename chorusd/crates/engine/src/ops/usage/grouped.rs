//! Usage of our own agents beside that of imported and captured conversations. Both are priced by the same table.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use chorus_base::error::Result;
use chorus_catalog::{Catalog, ImportedDivision, ImportedSums, ImportedUsageFilter, UsageFilter, UsageTotals};
use chorus_llm::{Models, Price, calculate_cost};
use chorus_proto::Usage;
use chorus_proto::methods::usage::{UsageBy, UsageGroup, UsageResult};
use jiff::civil::Date;

use super::price_gaps::PriceGaps;
use super::to_usage_sums;

/// The source of what our own agents used.
const OWN_SOURCE: &str = "chorus";

/// Identifies a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    source: String,
    project: Option<String>,
    model: Option<String>,
    day: Option<Date>,
}

/// Sums all usage by program, and by what `by` says.
pub(super) async fn usage(
    (catalog, models): (&Catalog, &Models),
    by: UsageBy,
    filter: UsageFilter,
) -> Result<UsageResult> {
    let mut groups = BTreeMap::<GroupKey, UsageTotals>::new();
    let mut gaps = PriceGaps::default();
    for row in catalog.usage.list_daily(filter.clone()).await? {
        gaps.add_own(models, &row.model, &row.sums);
        let key = GroupKey {
            source: OWN_SOURCE.to_owned(),
            model: (by == UsageBy::Model).then_some(row.model),
            day: (by == UsageBy::Day).then_some(row.day),
            project: None,
        };
        groups.entry(key).or_default().add(&row.sums);
    }
    let division = match by {
        UsageBy::Project => ImportedDivision::Project,
        UsageBy::Day => ImportedDivision::Day,
        UsageBy::Source | UsageBy::Model | UsageBy::Conversation => ImportedDivision::None,
    };
    let UsageFilter { agents, since, zone, .. } = filter;
    for row in catalog.imported_usage.sums(ImportedUsageFilter { agents, since, zone, division }).await? {
        let sums = priced(models, &row.model, &row.sums);
        gaps.add_imported(models, &row.model, &sums);
        let key = GroupKey {
            source: row.program,
            project: row.project,
            model: (by == UsageBy::Model).then_some(row.model),
            day: row.day,
        };
        groups.entry(key).or_default().add(&sums);
    }
    let mut total = UsageTotals::default();
    groups.values().for_each(|sums| total.add(sums));
    let mut groups: Vec<_> = groups.into_iter().collect();
    // The sort is stable: equal groups stay in the order of their names.
    groups.sort_by(|a, b| b.0.day.cmp(&a.0.day).then_with(|| order(&a.1, &b.1)));
    let groups = groups.into_iter().map(|(key, sums)| {
        let GroupKey { source, project, model, day } = key;
        UsageGroup { source, project, model, day, sums: to_usage_sums(&sums) }
    });
    Ok(UsageResult {
        days: Vec::new(),
        groups: groups.collect(),
        total: to_usage_sums(&total),
        has_imported: false,
        imported_calls: 0,
        unpriced_models: gaps.unpriced_models(),
        cached_as_input: gaps.cached_as_input(),
    })
}

/// Counts the calls of imported and captured conversations.
pub(super) async fn count_imported_calls(catalog: &Catalog, filter: UsageFilter) -> Result<u64> {
    let UsageFilter { agents, since, zone, .. } = filter;
    let filter = ImportedUsageFilter { agents, since, zone, division: ImportedDivision::None };
    let rows = catalog.imported_usage.sums(filter).await?;
    Ok(rows.iter().map(|row| row.sums.calls).sum())
}

/// Orders by cost, then by tokens, the highest first.
fn order(a: &UsageTotals, b: &UsageTotals) -> Ordering {
    let tokens = |sums: &UsageTotals| sums.input.saturating_add(sums.output);
    b.cost.total_cmp(&a.cost).then_with(|| tokens(b).cmp(&tokens(a)))
}

/// Prices calls of a model: by the price table, otherwise by what the program recorded.
fn priced(models: &Models, model: &str, sums: &ImportedSums) -> UsageTotals {
    let (cost, unpriced) = match models.price_by_name(model) {
        Some(price) => (cost_of(&price, sums), 0),
        None => (sums.cost, sums.calls.saturating_sub(sums.with_cost)),
    };
    UsageTotals {
        calls: sums.calls,
        input: sums.input,
        output: sums.output,
        cache_read: sums.cache_read,
        cost,
        unpriced,
        by_estimate: 0,
        lower_bound: sums.lower_bound,
    }
}

/// The costs of several calls add up, so that it does not matter how the tokens are divided among them.
fn cost_of(price: &Price, sums: &ImportedSums) -> f64 {
    let usage = Usage {
        input_tokens: Some(sums.input),
        output_tokens: Some(sums.output),
        cache_read_tokens: Some(sums.cache_read),
        ..Usage::default()
    };
    calculate_cost(price, &usage, Some(sums.cache_write))
}
