//! `chorusctl schedule list`: lists schedules.

use chorus_proto::methods::schedule::{List, ListParams, RunOutcome, Schedule};
use chorus_proto::shell_word::shell_word;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{agent_option, describe_rule, describe_rule_with_zone, outcome_of, state_of};
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::time::Clock;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List an agent's schedules (default)
///
/// NEXT is in the time zone of this shell, which it names. LAST is the outcome of the last run: ok, failed or skipped. `schedule show` has
/// the last 20 runs with their errors. Schedules of destroyed agents are suspended, and not listed until the agent is restored.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Schedules of all agents
    #[arg(long)]
    all_agents: bool,
    #[command(flatten)]
    table: TableArgs,
}

/// Widest rule on a terminal of less than `WIDE_COLUMNS`: with it, name, next time and state have room in 80 columns.
const MAX_RULE_WIDTH: usize = 34;
const WIDE_COLUMNS: usize = 110;

const COLUMNS: [Column; 6] = [
    Column::new("NAME"),
    Column::new("AGENT"),
    Column::new("WHEN").whole(),
    Column::new("NEXT").whole(),
    Column::new("LAST").whole().optional(),
    Column::new("STATE").whole(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let is_narrow = app.stdout.width().is_some_and(|width| width < WIDE_COLUMNS);
    let columns = COLUMNS.map(|column| match column {
        column if column.is_named("when") && is_narrow => column.at_most(MAX_RULE_WIDTH),
        // Of one agent, its name says nothing.
        column if column.is_named("agent") && !args.all_agents => column.left_out_first(),
        column => column,
    });
    let mut table = Table::with_args(columns, &args.table, app.stdout.format())?;
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
    table.write(&mut app.stdout)?;
    app.stdout.flush()?;
    let failed = |schedule: &&Schedule| schedule.runs.first().is_some_and(|run| run.outcome == RunOutcome::Failed);
    if let Some(failed) = schedules.iter().find(failed) {
        let agent = match all_agents {
            true => format!("--agent {} ", shell_word(&failed.agent)),
            false => agent_option(&failed.agent, app),
        };
        let name = sanitize::one_line(&failed.name);
        app.stderr.hint(&format!("see why a run failed: chorusctl {agent}schedule show {name}"));
    }
    Ok(())
}

/// Says when a schedule is due, with its time zone if it is not the one of this shell.
fn rule_with_zone(schedule: &Schedule, time: Option<Timestamp>, clock: &Clock) -> String {
    let rule = describe_rule(schedule);
    let zone = schedule.cron.as_ref().and_then(|_| TimeZone::get(&schedule.time_zone).ok());
    match (zone, time) {
        (Some(zone), Some(time)) if zone.to_offset(time) != clock.offset(time) => describe_rule_with_zone(schedule),
        _ => rule,
    }
}

fn row(schedule: &Schedule, app: &mut App) -> [Cell; 6] {
    let next = schedule.next_at.map(|time| Cell::from(app.stdout.clock().zoned_date_time(time)).sorted_by_time(time));
    let rule = rule_with_zone(schedule, schedule.next_at, app.stdout.clock());
    let last = schedule.runs.first().map(|run| {
        let (style, word) = outcome_of(run.outcome);
        Cell::new(style, format!("{word} {}", app.stdout.clock().ago(run.ended_at))).sorted_by_time(run.ended_at)
    });
    let (style, state) = state_of(schedule);
    [
        Cell::new(Style::Id, sanitize::one_line(&schedule.name)),
        sanitize::one_line(&schedule.agent).into(),
        rule.into(),
        next.unwrap_or_default(),
        last.unwrap_or_default(),
        Cell::new(style, state.to_owned()),
    ]
}
