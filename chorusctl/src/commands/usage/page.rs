//! The web page of `chorusctl usage --html`: charts by day, agent, project and model, each with its table.

use std::collections::HashMap;

use chorus_pictures::Bar;
use chorus_proto::methods::usage::{Show, UsageBy, UsageParams, UsageResult, UsageSums};

use super::NO_AGENT;
use super::day_chart::{Measure, add, sum_by_day};
use crate::app::App;
use crate::error::Error;
use crate::ui::units::{format_dollars, format_token_count, group_digits, pluralize};

/// The limit on bars of a chart; the rest is one more.
const MAX_BARS: usize = 25;

/// Requests what the page shows, and renders it.
pub(super) fn render(app: &mut App, params: &UsageParams) -> Result<String, Error> {
    let mut fetch = |by| app.call::<Show>(&UsageParams { by, ..params.clone() });
    let own = fetch(None)?;
    let by_day = fetch(Some(UsageBy::Day))?;
    let by_project = fetch(Some(UsageBy::Project))?;
    let by_model = fetch(Some(UsageBy::Model))?;
    let measure = Measure::of(&by_day.total);
    let mut content = day_section(&by_day, measure);
    let agents = own.days.iter().map(|row| {
        let agent = if row.agent.is_empty() { NO_AGENT } else { &row.agent };
        (agent.to_owned(), row.sums)
    });
    content.push_str(&section("agent", agents, measure));
    // Chorus's own agents have no project.
    let projects = by_project.groups.iter().map(|row| (name(row.project.as_deref(), &row.source), row.sums));
    content.push_str(&section("project", projects, measure));
    let models = by_model.groups.iter().map(|row| (row.model.clone().unwrap_or_else(|| "unknown".into()), row.sums));
    content.push_str(&section("model", models, measure));
    let programs = by_day.groups.iter().map(|row| (row.source.clone(), row.sums));
    content.push_str(&section("program", programs, measure));
    if by_day.total.unpriced_calls > 0 {
        let calls = pluralize(by_day.total.unpriced_calls, "call");
        content.push_str(&format!("<p class=\"note\">{calls} without a known price, not included in the cost</p>\n"));
    }
    let title = params.agent.as_ref().map_or_else(|| "Usage".to_owned(), |agent| format!("Usage of {agent}"));
    Ok(chorus_pictures::page(&title, &summary(&by_day, params.since.as_deref()), &content))
}

/// Names a project, or the program if it did not record any.
fn name(project: Option<&str>, source: &str) -> String {
    project.map_or_else(|| format!("({source})"), str::to_owned)
}

fn summary(used: &UsageResult, since: Option<&str>) -> String {
    let total = &used.total;
    let tokens = format_token_count(total.input_tokens.saturating_add(total.output_tokens));
    let cost = total.cost_usd.map(format_dollars);
    let days = sum_by_day(used);
    let range = days.first().zip(days.last()).map(|((first, _), (last, _))| format!("{first} to {last}"));
    let since = since.map(|since| format!("since {since}"));
    let parts = [range, since, Some(pluralize(total.calls, "call")), Some(tokens), cost];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn day_section(used: &UsageResult, measure: Measure) -> String {
    let days = sum_by_day(used);
    let bars: Vec<Bar> = days.iter().map(|(day, sums)| bar(day.to_string(), sums, measure)).collect();
    if bars.is_empty() {
        return "<p class=\"note\">no model calls</p>\n".to_owned();
    }
    let title = format!("{} by day", measure.name());
    let picture = chorus_pictures::days(&title, &bars, |value| measure.format_scale(value));
    let rows = days.iter().rev().filter(|(_, sums)| sums.calls > 0);
    chorus_pictures::section(&title, &picture, &table("day", rows.map(|(day, sums)| (day.to_string(), *sums))))
}

/// Renders a chart of sums that are divided by `what`: the highest first. Empty if there are none.
fn section(what: &str, parts: impl Iterator<Item = (String, UsageSums)>, measure: Measure) -> String {
    let mut sums: HashMap<String, UsageSums> = HashMap::new();
    for (name, part) in parts {
        add(sums.entry(name).or_default(), &part);
    }
    let mut sums: Vec<(String, UsageSums)> = sums.into_iter().collect();
    if sums.is_empty() {
        return String::new();
    }
    sums.sort_by(|(a, a_sums), (b, b_sums)| {
        measure.value(b_sums).total_cmp(&measure.value(a_sums)).then_with(|| a.cmp(b))
    });
    let mut bars: Vec<Bar> = sums.iter().take(MAX_BARS).map(|(name, sums)| bar(name.clone(), sums, measure)).collect();
    if let Some(rest) = sums.get(MAX_BARS..).filter(|rest| !rest.is_empty()) {
        let mut others = UsageSums::default();
        rest.iter().for_each(|(_, sums)| add(&mut others, sums));
        bars.push(bar(format!("{} others", rest.len()), &others, measure));
    }
    let title = format!("{} by {what}", measure.name());
    chorus_pictures::section(&title, &chorus_pictures::bars(&title, &bars), &table(what, sums.into_iter()))
}

fn bar(label: String, sums: &UsageSums, measure: Measure) -> Bar {
    let value = measure.value(sums);
    let tokens = format_token_count(sums.input_tokens.saturating_add(sums.output_tokens));
    let details = match measure {
        Measure::Cost => format!("{tokens} · {}", pluralize(sums.calls, "call")),
        Measure::Tokens => pluralize(sums.calls, "call"),
    };
    let text = if measure == Measure::Cost && sums.cost_usd.is_none() { "?".to_owned() } else { measure.format(value) };
    Bar { label, value, text, details, link: None }
}

fn table(what: &str, rows: impl Iterator<Item = (String, UsageSums)>) -> String {
    let rows: Vec<Vec<String>> = rows
        .map(|(name, sums)| {
            let counts = [sums.calls, sums.input_tokens, sums.cache_read_tokens, sums.output_tokens].map(group_digits);
            let cost = sums.cost_usd.map_or_else(|| "?".to_owned(), format_dollars);
            std::iter::once(name).chain(counts).chain([cost]).collect()
        })
        .collect();
    chorus_pictures::table(&[what, "calls", "input", "cached", "output", "cost"], &rows)
}
