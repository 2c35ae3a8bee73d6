//! `chorusctl tasks list`: lists background tasks.

use chorus_proto::methods::tasks::{List, ListParams, ListResult, Task, TaskStatus};
use serde::Serialize;

use super::{describe_state, status_style};
use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize, time};

/// Default number of ended tasks in the text output.
const MAX_ENDED_TASKS: usize = 20;
/// The `--limit` that the hint suggests if there are more.
const SUGGESTED_LIMIT: usize = 200;

/// List an agent's background tasks (default)
///
/// Running tasks come first, then ended ones, newest first: 20 of them, unless you set --limit or use JSON.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Tasks of all agents, including deleted ones
    #[arg(long)]
    all_agents: bool,
    /// Maximum number of tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 6] = [
    Column::new("ID").whole(),
    Column::new("AGENT"),
    Column::new("STATUS"),
    Column::new("WHEN").whole(),
    Column::new("TOOK").align_right().optional(),
    Column::new("COMMAND").flexible(),
];

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let whole = fetch_tasks(args, app)?;
    match app.stdout.format() {
        OutputFormat::Json => print_json(app, &whole),
        OutputFormat::Jsonl => whole.tasks.iter().try_for_each(|task| print_json(app, task)),
        OutputFormat::Text => print_table(table, &whole.tasks, args, app),
    }
}

/// Fetches all pages up to the limit; for text output only as many as are shown, or all that are sorted or filtered.
fn fetch_tasks(args: &Args, app: &mut App) -> Result<ListResult, Error> {
    let needs_all = args.table.rows.needs_all_rows();
    let brief = app.stdout.format() == OutputFormat::Text && args.limit.is_none() && !needs_all;
    let limit = args.limit.filter(|_| !needs_all);
    let mut whole = ListResult { tasks: Vec::new(), next: Some(0) };
    while let Some(offset) = whole.next {
        let listed = whole.tasks.len() as u64;
        let left = match limit {
            Some(limit) => Some(limit.saturating_sub(listed)),
            // Request one more to know whether there are others.
            None if brief => {
                Some((count_running(&whole.tasks) + MAX_ENDED_TASKS + 1).saturating_sub(whole.tasks.len()) as u64)
            }
            None => None,
        };
        if left == Some(0) {
            break;
        }
        let agent = app.agent().filter(|_| !args.all_agents);
        let params = ListParams { agent, all_agents: args.all_agents, offset: Some(offset), limit: left };
        let page = app.call::<List>(&params)?;
        whole.tasks.extend(page.tasks);
        whole.next = page.next;
    }
    Ok(whole)
}

/// Counts the running tasks, which come first.
fn count_running(tasks: &[Task]) -> usize {
    tasks.iter().take_while(|task| task.status == TaskStatus::Running).count()
}

fn print_json(app: &mut App, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&text)
}

fn print_table(mut table: Table, tasks: &[Task], args: &Args, app: &mut App) -> Result<(), Error> {
    if tasks.is_empty() {
        app.stderr.line("no background tasks");
        return Ok(());
    }
    let default = if args.table.rows.needs_all_rows() { usize::MAX } else { count_running(tasks) + MAX_ENDED_TASKS };
    table.limit_rows(args.limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    let with_agent = args.all_agents || args.table.rows.names("agent");
    for task in tasks {
        table.add_row(task_row(task, with_agent, app));
    }
    table.write(&mut app.stdout)?;
    if args.limit.is_none() && default < tasks.len() {
        app.stdout.flush()?;
        app.stderr.line(&format!("show older tasks: chorusctl tasks list --limit {SUGGESTED_LIMIT}"));
    }
    Ok(())
}

fn task_row(task: &Task, with_agent: bool, app: &mut App) -> [Cell; 6] {
    let when = task.ended_at.unwrap_or(task.started_at);
    let took = task
        .ended_at
        .map(|at| Cell::from(format_run_time(task, at)).sorted_by(at.duration_since(task.started_at).as_secs_f64()));
    [
        Cell::new(Style::Id, sanitize::one_line(&task.id)),
        if with_agent { sanitize::one_line(&task.agent).into() } else { Cell::default() },
        Cell::new(status_style(task.status), describe_state(task)),
        Cell::from(app.stdout.clock().ago(when)).sorted_by_time(when),
        took.unwrap_or_default(),
        sanitize::one_line(&task.command).into(),
    ]
}

/// Formats how long a task ran.
pub fn format_run_time(task: &Task, until: jiff::Timestamp) -> String {
    let seconds = until.duration_since(task.started_at).as_secs();
    time::format_two_units(u64::try_from(seconds).unwrap_or(0))
}
