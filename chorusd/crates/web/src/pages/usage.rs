//! Usage and cost: by day, agent, project and model.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use chorus_proto::methods::usage::{Show, UsageBy, UsageGroup, UsageParams, UsageResult, UsageSums};
use chorus_terminal_text::units::{format_dollars, format_tokens, group_digits};
use jiff::Span;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use crate::app::{App, Daemon};
use crate::chart::{self, Day};
use crate::extract::QueryParams;
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::text::{query, short};
use chorus_daemon_client::Failure;

/// The bars of a chart; the others are one.
const MAX_BARS: usize = 12;
/// The days of a chart; older ones are in the tables.
const MAX_DAYS: usize = 92;
/// The rows of a table.
const MAX_ROWS: usize = 200;
/// The days of a chart at least.
const MIN_DAYS: i64 = 14;
const PERIODS: [(&str, &str); 4] = [("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("", "all")];
/// Our own agents, as a source.
const OWN: &str = "chorus";

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    since: Option<String>,
    agent: Option<String>,
}

pub(crate) async fn show(State(app): State<Arc<App>>, QueryParams(params): QueryParams<Params>) -> PageResult {
    let frame = Frame::new(&app, "Usage", Section::Usage);
    let since = params.since.as_deref().unwrap_or("30d");
    let agent = params.agent.as_deref().filter(|agent| !agent.is_empty());
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let by_day = grouped(&mut daemon, since, agent, Some(UsageBy::Day)).await?;
    let by_model = grouped(&mut daemon, since, agent, Some(UsageBy::Model)).await?;
    let by_project = grouped(&mut daemon, since, agent, Some(UsageBy::Project)).await?;
    // One row for each agent, day and model: too many of them may not fit an answer.
    let by_agent = grouped(&mut daemon, since, agent, None).await;
    let total = &by_day.total;
    let unit = if total.cost_usd.is_some_and(|cost| cost > 0.0) { Unit::Dollars } else { Unit::Tokens };
    let main = html! {
        div.heading {
            h1 { "Usage" @if let Some(agent) = agent { " of " (short(agent, 64)) } }
            @for (value, text) in PERIODS {
                a href=(query(&[("since", Some(value)), ("agent", agent)])) aria-current=[(value == since).then_some("true")] { (text) }
            }
            @if agent.is_some() { a href=(query(&[("since", Some(since))])) { "All agents" } }
        }
        div #usage data-live data-on="turn.finished" {
            (render_total(total))
            (render_days(&by_day, unit, since, overview.now.to_zoned(app.zone.clone()).date()))
            h2.section { "By agent" }
            @match &by_agent {
                Ok(result) => (render_names(&agents(result, &by_day), unit)),
                Err(_) => p.none { "Too many to show at once; choose a shorter time." },
            }
            h2.section { "By project" }
            (render_names(&names(&by_project, project_name), unit))
            h2.section { "By model" }
            (render_names(&names(&by_model, model_name), unit))
        }
    };
    Ok(page(layout::page(&frame, &overview, &main)))
}

async fn grouped(
    daemon: &mut Daemon,
    since: &str,
    agent: Option<&str>,
    by: Option<UsageBy>,
) -> Result<UsageResult, Failure> {
    let since = Some(since.to_owned()).filter(|since| !since.is_empty());
    daemon.call::<Show>(UsageParams { agent: agent.map(str::to_owned), since, by }).await
}

/// By what bars are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Dollars,
    /// If no price is known.
    Tokens,
}

impl Unit {
    #[expect(clippy::cast_precision_loss, reason = "the length of a bar")]
    fn of(self, sums: &UsageSums) -> f64 {
        match self {
            Self::Dollars => sums.cost_usd.unwrap_or(0.0),
            Self::Tokens => (sums.input_tokens + sums.output_tokens) as f64,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded sum of tokens")]
    fn format(self, value: f64) -> String {
        match self {
            Self::Dollars => format_dollars(value),
            Self::Tokens => format!("{} tokens", format_tokens(value as u64)),
        }
    }
}

fn add(to: &mut UsageSums, more: &UsageSums) {
    to.calls += more.calls;
    to.input_tokens += more.input_tokens;
    to.output_tokens += more.output_tokens;
    to.cache_read_tokens += more.cache_read_tokens;
    to.unpriced_calls += more.unpriced_calls;
    if let Some(cost) = more.cost_usd {
        *to.cost_usd.get_or_insert(0.0) += cost;
    }
}

fn project_name(group: &UsageGroup) -> String {
    match (&group.project, &*group.source) {
        (Some(project), _) => short(project, 200),
        (None, OWN) => "Chorus's own agents".into(),
        (None, source) => format!("{}, no directory", short(source, 64)),
    }
}

fn model_name(group: &UsageGroup) -> String {
    group.model.as_deref().map_or_else(|| "unknown".into(), |model| short(model, 100))
}

/// Sums groups by a name.
fn names(result: &UsageResult, name: impl Fn(&UsageGroup) -> String) -> Vec<(String, UsageSums)> {
    sum(result.groups.iter().map(|group| (name(group), &group.sums)))
}

/// Sums by our own agents, and by the programs whose conversations were captured or imported.
fn agents(result: &UsageResult, by_source: &UsageResult) -> Vec<(String, UsageSums)> {
    let name = |agent: &str| if agent.is_empty() { "(search)".to_owned() } else { short(agent, 64) };
    let own = result.days.iter().map(|day| (name(&day.agent), &day.sums));
    let others = by_source.groups.iter().filter(|group| group.source != OWN);
    sum(own.chain(others.map(|group| (short(&group.source, 64), &group.sums))))
}

fn sum<'a>(rows: impl Iterator<Item = (String, &'a UsageSums)>) -> Vec<(String, UsageSums)> {
    let mut sums: HashMap<String, UsageSums> = HashMap::new();
    for (name, more) in rows {
        add(sums.entry(name).or_default(), more);
    }
    sums.into_iter().collect()
}

fn render_total(total: &UsageSums) -> Markup {
    html! {
        dl.totals {
            div { dt { "Cost" } dd { (cost(total)) } }
            div { dt { "Calls" } dd { (group_digits(total.calls)) } }
            div { dt { "Input" } dd { (format_tokens(total.input_tokens)) } }
            div { dt { "Output" } dd { (format_tokens(total.output_tokens)) } }
        }
        @if total.unpriced_calls > 0 {
            p.line { "The price of " (group_digits(total.unpriced_calls)) " calls is not known; the cost does not include them." }
        }
    }
}

fn cost(sums: &UsageSums) -> String {
    sums.cost_usd.map_or_else(|| "not known".into(), format_dollars)
}

/// Draws the days until today without gaps, with our own agents and each program on top of each other.
fn render_days(result: &UsageResult, unit: Unit, since: &str, today: Date) -> Markup {
    let mut sources: BTreeSet<&str> = result.groups.iter().map(|group| &*group.source).collect();
    let own = sources.remove(OWN).then_some(OWN);
    let sources: Vec<&str> = own.into_iter().chain(sources).collect();
    let mut by_day: BTreeMap<Date, Vec<&UsageGroup>> = BTreeMap::new();
    for group in &result.groups {
        if let Some(day) = group.day {
            by_day.entry(day).or_default().push(group);
        }
    }
    let count = since.strip_suffix('d').and_then(|days| days.parse().ok()).unwrap_or(MIN_DAYS).clamp(1, 366);
    let start = today.saturating_sub(Span::new().days(count - 1));
    let days: Vec<Date> = match by_day.keys().next() {
        Some(first) => start.min(*first).series(Span::new().days(1)).take_while(|day| *day <= today).collect(),
        None => Vec::new(),
    };
    let is_cut = days.len() > MAX_DAYS;
    let days = &days[days.len().saturating_sub(MAX_DAYS)..];
    let value = |day: &Date, source: &str| {
        let groups = by_day.get(day).into_iter().flatten();
        groups.filter(|group| group.source == source).map(|group| unit.of(&group.sums)).sum()
    };
    let bars: Vec<Day> = days
        .iter()
        .map(|day| Day { label: day.to_string(), values: sources.iter().map(|source| value(day, source)).collect() })
        .collect();
    let series: Vec<String> = sources.iter().map(|source| short(source, 40)).collect();
    let sums = by_day.iter().rev().map(|(day, groups)| {
        let mut sums = UsageSums::default();
        groups.iter().for_each(|group| add(&mut sums, &group.sums));
        (day.to_string(), sums)
    });
    let rows: Vec<_> = sums.collect();
    let label = match unit {
        Unit::Dollars => "Cost by day",
        Unit::Tokens => "Tokens by day",
    };
    let label = if is_cut { format!("{label}, the last {MAX_DAYS} days") } else { label.to_owned() };
    html! {
        h2.section { "By day" }
        @if bars.is_empty() { p.none { "No model was called in this time." } }
        @else { (chart::days(&bars, &series, &label, |value| unit.format(value))) }
        (render_table(&rows))
    }
}

fn render_names(rows: &[(String, UsageSums)], unit: Unit) -> Markup {
    let mut rows = rows.to_vec();
    rows.sort_by(|(name, a), (other, b)| unit.of(b).total_cmp(&unit.of(a)).then_with(|| name.cmp(other)));
    let mut bars: Vec<(String, f64, String)> = Vec::new();
    let (shown, others) = rows.split_at(rows.len().min(MAX_BARS));
    let text = |sums: &UsageSums| match unit {
        Unit::Dollars if sums.cost_usd.is_none() => "not known".to_owned(),
        _ => unit.format(unit.of(sums)),
    };
    bars.extend(shown.iter().map(|(name, sums)| (name.clone(), unit.of(sums), text(sums))));
    if !others.is_empty() {
        let value = others.iter().map(|(_, sums)| unit.of(sums)).sum();
        bars.push((format!("{} others", group_digits(others.len() as u64)), value, unit.format(value)));
    }
    html! {
        @if rows.is_empty() { p.none { "No model was called in this time." } }
        (chart::names(&bars))
        (render_table(&rows))
    }
}

fn render_table(rows: &[(String, UsageSums)]) -> Markup {
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Table" }
                div.wide tabindex="0" {
                    table {
                        thead { tr { th {} th { "Calls" } th { "Input" } th { "Output" } th { "From cache" } th { "Cost" } } }
                        tbody {
                            @for (name, sums) in rows.iter().take(MAX_ROWS) {
                                tr {
                                    th scope="row" { (name) }
                                    td { (group_digits(sums.calls)) }
                                    td { (group_digits(sums.input_tokens)) }
                                    td { (group_digits(sums.output_tokens)) }
                                    td { (group_digits(sums.cache_read_tokens)) }
                                    td { (cost(sums)) }
                                }
                            }
                        }
                    }
                    @if rows.len() > MAX_ROWS { p.none { "and " (rows.len() - MAX_ROWS) " more: chorusctl usage" } }
                }
            }
        }
    }
}
