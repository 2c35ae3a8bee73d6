//! `chorusctl usage`: prints tokens and cost of model calls.

mod day_chart;
mod page;

use std::path::PathBuf;

use chorus_proto::methods::usage::{Show, UsageBy, UsageGroup, UsageParams, UsageResult, UsageSums};
use chorus_proto::shell_word::shell_word;

use crate::app::App;
use crate::commands::session::export::print_page_or_write;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_dollars, pluralize};
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// Stands for the agent of what no agent asked for: vectors of messages.
const NO_AGENT: &str = "(search)";

/// Show token usage and cost
///
/// Lists per day, agent and model: input and output tokens, input tokens from the provider's cache, and the cost in US dollars if the price
/// is known. A day ends at midnight in the daemon's time zone. Deleted agents are included. "(search)" is the model of a provider by which messages are
/// found by their meaning.
///
/// With --by source, project, model or day, the conversations that were captured or imported from other programs are counted, too, as far as
/// the programs recorded what they used; "chorus" is the source of Chorus's own agents.
///
/// On a terminal, bars by day are above the table. With --html, it is a web page with charts by day, agent, project, model and program, in one
/// file that needs no other:
///
///   chorusctl usage --since 30d --html --output usage.html
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Only calls since then: 7d (whole days), 1h30m, yesterday, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Divide the sums by this
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Print a web page with charts
    #[arg(long, conflicts_with_all = ["by", "columns", "sort", "filter", "long", "json", "format"])]
    html: bool,
    /// With --html: the file to write [default: standard output]
    #[arg(long, short, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArgs,
}

/// A division of the sums.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    /// Also per conversation
    Conversation,
    /// Per program, with captured conversations
    Source,
    /// Per directory and program, with captured conversations
    Project,
    /// Per model and program, with captured conversations
    Model,
    /// Per day and program, with captured conversations
    Day,
}

impl From<By> for UsageBy {
    fn from(by: By) -> Self {
        match by {
            By::Conversation => Self::Conversation,
            By::Source => Self::Source,
            By::Project => Self::Project,
            By::Model => Self::Model,
            By::Day => Self::Day,
        }
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    // As in `status`, only `--agent` filters; the agent of the current directory does not.
    let params = UsageParams {
        agent: args.agent.or_else(|| app.global.agent.clone()),
        since: args.since,
        by: args.by.map(Into::into),
    };
    if args.html {
        let page = page::render(app, &params)?;
        return print_page_or_write(app, &page, args.output.as_deref());
    }
    let grouped = args.by.filter(|by| !matches!(by, By::Conversation));
    let columns = grouped.map_or_else(day_columns, group_columns);
    let table = Table::with_args(columns, &args.table, app.stdout.format())?;
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Show>(&params)?;
        return print_pages::print_entries(&mut app.stdout, &raw, if grouped.is_some() { "groups" } else { "days" });
    }
    let with_chart = !args.table.rows.is_given();
    app.call_and_print::<Show>(&params, |app, used| {
        if with_chart {
            day_chart::print(&mut app.stdout, &used)?;
        }
        match grouped {
            Some(by) => print_groups(table, app, by, &used),
            None => print_usage(table, app, &params, &used),
        }
    })
}

fn print_groups(mut table: Table, app: &mut App, by: By, used: &UsageResult) -> Result<(), Error> {
    if used.groups.is_empty() {
        app.stderr.line("no model calls");
        return Ok(());
    }
    for row in &used.groups {
        let cells = group_cell(by, row).into_iter().chain([sanitize::one_line(&row.source)]);
        table.add_row(cells.chain(usage_columns(&row.sums)).map(Cell::from).collect::<Vec<_>>());
    }
    add_total(&mut table, if matches!(by, By::Source) { 1 } else { 2 }, &used.total);
    table.write(&mut app.stdout)?;
    print_notes(app, used)
}

fn day_columns() -> Vec<Column> {
    let columns = [
        Column::new("DAY").whole(),
        Column::new("AGENT"),
        Column::new("CONVERSATION").optional(),
        Column::new("MODEL").flexible(),
    ];
    columns.into_iter().chain(count_columns()).collect()
}

fn group_columns(by: By) -> Vec<Column> {
    let group = match by {
        By::Project => Some(Column::new("PROJECT").flexible()),
        By::Model => Some(Column::new("MODEL").flexible()),
        By::Day => Some(Column::new("DAY").whole()),
        By::Source | By::Conversation => None,
    };
    group.into_iter().chain([Column::new("SOURCE")]).chain(count_columns()).collect()
}

/// The first cell of a row, unless that is the source.
fn group_cell(by: By, row: &UsageGroup) -> Option<String> {
    let text = |value: &Option<String>| sanitize::one_line(value.as_deref().unwrap_or("-"));
    match by {
        By::Project => Some(text(&row.project)),
        By::Model => Some(text(&row.model)),
        By::Day => Some(row.day.map_or_else(|| "-".to_owned(), |day| day.to_string())),
        By::Source | By::Conversation => None,
    }
}

fn count_columns() -> [Column; 5] {
    let [calls, input, cached, output, cost] =
        ["CALLS", "INPUT", "CACHED", "OUTPUT", "COST"].map(|name| Column::new(name).align_right());
    [calls.optional(), input, cached.optional(), output, cost]
}

/// Adds the line of the total, behind `leading` columns.
fn add_total(table: &mut Table, leading: usize, total: &UsageSums) {
    let mut cells = vec![Cell::new(Style::Strong, "total")];
    cells.resize_with(leading, Cell::default);
    cells.extend(usage_columns(total).map(|text| Cell::new(Style::Strong, text)));
    table.set_total(cells);
}

fn print_usage(mut table: Table, app: &mut App, params: &UsageParams, used: &UsageResult) -> Result<(), Error> {
    if used.days.is_empty() {
        app.stderr.line(if used.has_imported { "no model calls by agents of Chorus" } else { "no model calls" });
        print_imported_hint(app, params, used);
        return Ok(());
    }
    for row in &used.days {
        let agent = if row.agent.is_empty() { NO_AGENT.to_owned() } else { sanitize::one_line(&row.agent) };
        let conversation = sanitize::one_line(row.conversation.as_deref().unwrap_or_default());
        let mut cells: Vec<Cell> = vec![row.day.to_string().into(), agent.into(), conversation.into()];
        cells.push(sanitize::one_line(&row.model).into());
        cells.extend(usage_columns(&row.sums).map(Cell::from));
        table.add_row(cells);
    }
    add_total(&mut table, 4, &used.total);
    table.write(&mut app.stdout)?;
    print_notes(app, used)?;
    print_imported_hint(app, params, used);
    Ok(())
}

/// Says that there is usage which the table leaves out.
fn print_imported_hint(app: &mut App, params: &UsageParams, used: &UsageResult) {
    // A daemon of an earlier release does not count them.
    if !used.has_imported || (used.imported_calls == 0 && !used.days.is_empty()) {
        return;
    }
    let mut command = "chorusctl usage".to_owned();
    command.extend(params.agent.iter().map(|agent| format!(" {}", shell_word(agent))));
    command.extend(params.since.iter().map(|since| format!(" --since {}", shell_word(since))));
    let count = match used.imported_calls {
        0 => String::new(),
        calls => format!(" ({})", pluralize(calls, "call")),
    };
    app.stderr.hint(&format!(
        "captured and imported conversations{count} are not included; to include them: {command} --by source"
    ));
}

/// Explains the numbers of a table.
fn print_notes(app: &mut App, used: &UsageResult) -> Result<(), Error> {
    let total = &used.total;
    app.stdout.flush()?;
    if total.estimated_calls > 0 {
        let calls = pluralize(total.estimated_calls, "call");
        app.stderr.line(&format!("{calls} with estimated token counts: not reported by the server, or cut off"));
    }
    if total.lower_bound_calls > 0 {
        let calls = pluralize(total.lower_bound_calls, "call");
        app.stderr.line(&format!("{calls} with more output tokens than the program recorded"));
    }
    if let [name, others @ ..] = &*used.cached_as_input {
        app.stderr.line(&format!(
            "input from the cache costs as much as other input: the price of {}{} has no cache_read",
            sanitize::one_line(name),
            and_others(others.len())
        ));
        app.stderr.hint(&price_command(name, "cache_read"));
    }
    if total.unpriced_calls > 0 {
        let calls = pluralize(total.unpriced_calls, "call");
        let Some((name, others)) = used.unpriced_models.split_first() else {
            app.stderr.line(&format!("{calls} without a known price, not included in the cost"));
            app.stderr.hint("set a price in config.toml: [prices.\"provider/model\"]");
            return Ok(());
        };
        let models = format!("{}{}", sanitize::one_line(name), and_others(others.len()));
        app.stderr.line(&format!("{calls} without a known price, not included in the cost: {models}"));
        app.stderr
            .hint("set its prices in US dollars per million tokens, which are [prices.\"MODEL\"] in config.toml:");
        for key in ["input", "output", "cache_read"] {
            app.stderr.line(&format!("  {}", price_command(name, key)));
        }
    }
    Ok(())
}

fn and_others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and another one".to_owned(),
        count => format!(" and {count} others"),
    }
}

/// Returns the command that sets a price of a model.
fn price_command(model: &str, key: &str) -> String {
    let name = format!("prices.{}.{key}", serde_json::Value::from(sanitize::one_line(model)));
    format!("chorusctl config set {} PRICE", shell_word(&name))
}

fn usage_columns(sums: &UsageSums) -> [String; 5] {
    let cached = if sums.cache_read_tokens == 0 { String::new() } else { sums.cache_read_tokens.to_string() };
    [
        sums.calls.to_string(),
        sums.input_tokens.to_string(),
        cached,
        sums.output_tokens.to_string(),
        sums.cost_usd.map_or_else(|| "?".to_owned(), format_dollars),
    ]
}
