//! `chorusctl usage`: prints tokens and cost of model calls.

use chorus_proto::methods::usage::{Show, UsageBy, UsageParams, UsageResult, UsageSums};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_dollars, pluralize};
use crate::ui::{Cell, Column, Style, Table, sanitize};

/// Stands for the agent of what no agent asked for: vectors of messages.
const NO_AGENT: &str = "(search)";

/// Show token usage and cost
///
/// Lists per day, agent and model: input and output tokens, input tokens from the provider's cache, and the cost in US dollars if the price
/// is known. A day ends at midnight in the daemon's time zone. Deleted agents are included. "(search)" is the model of a provider by which messages are
/// found by their meaning.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Only calls since then: 7d, 1h30m, yesterday, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Also per conversation
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
}

/// A further division of the sums, in addition to day, agent and model.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    Conversation,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    // As in `status`, only `--agent` filters; the agent of the current directory does not.
    let params = UsageParams {
        agent: args.agent.or_else(|| app.global.agent.clone()),
        since: args.since,
        by: args.by.map(|By::Conversation| UsageBy::Conversation),
    };
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Show>(&params)?;
        return print_pages::print_entries(&mut app.stdout, &raw, "days");
    }
    app.call_and_print::<Show>(&params, |app, used| print_usage(app, &used))
}

fn print_usage(app: &mut App, used: &UsageResult) -> Result<(), Error> {
    if used.days.is_empty() {
        app.stderr.line("no model calls");
        return Ok(());
    }
    let by_conversation = used.days.iter().any(|row| row.conversation.is_some());
    let mut columns = vec![Column::new("DAY"), Column::new("AGENT")];
    if by_conversation {
        columns.push(Column::new("CONVERSATION"));
    }
    columns.extend([
        Column::new("MODEL").flexible(),
        Column::new("CALLS").align_right(),
        Column::new("INPUT").align_right(),
        Column::new("CACHED").align_right(),
        Column::new("OUTPUT").align_right(),
        Column::new("COST").align_right(),
    ]);
    let mut table = Table::new(columns);
    for row in &used.days {
        let agent = if row.agent.is_empty() { NO_AGENT.to_owned() } else { sanitize::one_line(&row.agent) };
        let mut cells = vec![row.day.to_string().into(), agent.into()];
        if by_conversation {
            cells.push(sanitize::one_line(row.conversation.as_deref().unwrap_or_default()).into());
        }
        cells.push(sanitize::one_line(&row.model).into());
        cells.extend(usage_columns(&row.sums).map(Cell::from));
        table.add_row(cells);
    }
    let mut cells = vec![Cell::new(Style::Strong, "total"), Cell::default(), Cell::default()];
    if by_conversation {
        cells.push(Cell::default());
    }
    cells.extend(usage_columns(&used.total).map(|text| Cell::new(Style::Strong, text)));
    table.add_row(cells);
    table.write(&mut app.stdout)?;
    if used.total.estimated_calls > 0 {
        app.stdout.flush()?;
        let calls = pluralize(used.total.estimated_calls, "call");
        app.stderr.line(&format!("{calls} with estimated token counts: not reported by the server, or cut off"));
    }
    if used.total.unpriced_calls > 0 {
        app.stdout.flush()?;
        app.stderr.line(&format!(
            "{} without a known price, not included in the cost",
            pluralize(used.total.unpriced_calls, "call")
        ));
        app.stderr.hint("set a price in config.toml: [prices.\"provider/model\"]");
    }
    Ok(())
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
