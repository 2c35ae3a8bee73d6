//! `chorusctl usage`.

use chorus_proto::methods::usage::{Show, UsageParams, UsageResult, UsageSums};

use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::words::{count, dollars};
use crate::ui::{Cell, Column, Style, Table, safe};

/// Show what calls of models used
///
/// By day, agent and model: tokens in and out, how many of those in came out of the provider's cache, and what they cost in US
/// dollars where the price is known. A day ends at midnight where the daemon runs. Agents that were destroyed are there too.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Only calls since: 7d, 1h30m, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

/// Shows it.
///
/// # Errors
/// Why there is nothing to show.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    // As in `status`, the agent of the current directory narrows nothing down.
    let params = UsageParams { agent: args.agent.or_else(|| app.global.agent.clone()), since: args.since };
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<Show>(&params)?;
        return reply::lines(&mut app.out, &raw, "days");
    }
    app.answer::<Show>(&params, |app, used| show(app, &used))
}

fn show(app: &mut App, used: &UsageResult) -> Result<(), Failure> {
    if used.days.is_empty() {
        app.notes.line("no model was called");
        return Ok(());
    }
    let mut table = Table::new([
        Column::new("DAY"),
        Column::new("AGENT"),
        Column::new("MODEL").flexible(),
        Column::new("CALLS").right(),
        Column::new("INPUT").right(),
        Column::new("CACHED").right().optional(),
        Column::new("OUTPUT").right(),
        Column::new("COST").right(),
    ]);
    for row in &used.days {
        let mut cells =
            vec![row.day.to_string().into(), safe::one_line(&row.agent).into(), safe::one_line(&row.model).into()];
        cells.extend(numbers(&row.sums).map(Cell::from));
        table.row(cells);
    }
    let mut cells = vec![Cell::new(Style::Strong, "total"), Cell::default(), Cell::default()];
    cells.extend(numbers(&used.total).map(|text| Cell::new(Style::Strong, text)));
    table.row(cells);
    table.write(&mut app.out)?;
    if used.total.estimated_calls > 0 {
        app.out.flush()?;
        let calls = count(used.total.estimated_calls, "call");
        app.notes.line(&format!("{calls} with estimated tokens: the server reported none, or the call was cut off"));
    }
    if used.total.unpriced_calls > 0 {
        app.out.flush()?;
        app.notes.line(&format!(
            "{} without a known price: the cost is without them",
            count(used.total.unpriced_calls, "call")
        ));
        app.notes.hint("[prices.\"provider/model\"] in config.toml sets one");
    }
    Ok(())
}

fn numbers(sums: &UsageSums) -> [String; 5] {
    let cached = if sums.cache_read_tokens == 0 { String::new() } else { sums.cache_read_tokens.to_string() };
    [
        sums.calls.to_string(),
        sums.input_tokens.to_string(),
        cached,
        sums.output_tokens.to_string(),
        sums.cost_usd.map_or_else(|| "?".to_owned(), dollars),
    ]
}
