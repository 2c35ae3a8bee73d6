//! `chorusctl schedule list`: lists schedules.

use chorus_proto::methods::schedule::{List, ListParams, Schedule};

use super::{describe_rule, format_time, outcome_of, state_of};
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List an agent's schedules (default)
///
/// NEXT is in the time zone of the schedule. LAST is the outcome of the last run: ok, failed or skipped. With --json, the last 20 runs
/// are listed with their errors.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Schedules of all agents
    #[arg(long)]
    all_agents: bool,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 6] = [
    Column::new("NAME"),
    Column::new("AGENT"),
    Column::new("WHEN").flexible(),
    Column::new("NEXT").whole(),
    Column::new("LAST").whole(),
    Column::new("STATE").whole(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let (agent, all_agents) = (app.agent().filter(|_| !args.all_agents), args.all_agents);
    let params = |offset| ListParams { agent: agent.clone(), all_agents, offset: Some(offset), limit: None };
    if app.stdout.format() != OutputFormat::Text {
        return print_pages::print_all_pages::<List, _>(app, "schedules", &params(0), params);
    }
    let (mut schedules, mut next) = (Vec::new(), Some(0));
    while let Some(offset) = next {
        let page = app.call::<List>(&params(offset))?;
        schedules.extend(page.schedules);
        next = page.next.filter(|next| *next > offset);
    }
    if schedules.is_empty() {
        app.stderr.line("no schedules; add one: chorusctl schedule add NAME --cron \"0 7 * * mon-fri\" MESSAGE");
        return Ok(());
    }
    for schedule in &schedules {
        table.add_row(row(schedule, app));
    }
    table.write(&mut app.stdout)
}

fn row(schedule: &Schedule, app: &mut App) -> [Cell; 6] {
    let next =
        schedule.next_at.map(|time| Cell::from(format_time(schedule, time, app.stdout.clock())).sorted_by_time(time));
    let last = schedule.runs.first().map(|run| {
        let (style, word) = outcome_of(run.outcome);
        Cell::new(style, format!("{word} {}", app.stdout.clock().ago(run.ended_at))).sorted_by_time(run.ended_at)
    });
    let (style, state) = state_of(schedule);
    [
        Cell::new(Style::Id, sanitize::one_line(&schedule.name)),
        sanitize::one_line(&schedule.agent).into(),
        describe_rule(schedule).into(),
        next.unwrap_or_default(),
        last.unwrap_or_default(),
        Cell::new(style, state.to_owned()),
    ]
}
