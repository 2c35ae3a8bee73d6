//! `chorusctl tasks list`.

use chorus_proto::methods::tasks::{List, ListParams, ListResult, Task, TaskStatus};
use serde::Serialize;

use super::{state, style};
use crate::app::App;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::{Cell, Column, Style, Table, safe, time};

/// Tasks that have ended are listed up to here, unless more are asked for.
const ENDED: usize = 20;
/// How many a hint asks for, where there are others.
const MORE: usize = 200;

/// List the tasks of an agent; the same as no command
///
/// Those that run come first, then those that have ended, the newest first: 20 of them, unless --limit or JSON asks for more.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Those of every agent, destroyed ones too
    #[arg(long)]
    all_agents: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Lists them.
///
/// # Errors
/// Why there is no list.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let whole = all(args, app)?;
    match app.out.format() {
        Format::Json => json_line(app, &whole),
        Format::Jsonl => whole.tasks.iter().try_for_each(|task| json_line(app, task)),
        Format::Text => text(&whole.tasks, args, app),
    }
}

/// Every page, as far as a limit goes; for a person only those that have something to show.
fn all(args: &Args, app: &mut App) -> Result<ListResult, Failure> {
    let brief = app.out.format() == Format::Text && args.limit.is_none();
    let mut whole = ListResult { tasks: Vec::new(), next: Some(0) };
    while let Some(offset) = whole.next {
        let listed = whole.tasks.len() as u64;
        let left = match args.limit {
            Some(limit) => Some(limit.saturating_sub(listed)),
            // One more tells that there are others.
            None if brief => Some((running(&whole.tasks) + ENDED + 1).saturating_sub(whole.tasks.len()) as u64),
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

/// How many run; they come first.
fn running(tasks: &[Task]) -> usize {
    tasks.iter().take_while(|task| task.status == TaskStatus::Running).count()
}

fn json_line(app: &mut App, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.out.json_line(&text)
}

fn text(tasks: &[Task], args: &Args, app: &mut App) -> Result<(), Failure> {
    if tasks.is_empty() {
        app.notes.line("no tasks; an agent starts one with `bash` in the background");
        return Ok(());
    }
    let shown = if args.limit.is_some() { tasks.len() } else { tasks.len().min(running(tasks) + ENDED) };
    let mut table = Table::new([
        Column::new("ID"),
        Column::new("AGENT"),
        Column::new("STATUS"),
        Column::new("WHEN"),
        Column::new("TOOK").right().optional(),
        Column::new("PID").right().optional(),
        Column::new("COMMAND").flexible(),
    ]);
    for task in &tasks[..shown] {
        table.row(row(task, args.all_agents, app));
    }
    table.write(&mut app.out)?;
    if shown < tasks.len() {
        app.out.flush()?;
        app.notes.line(&format!("there are older tasks: chorusctl tasks list --limit {MORE}"));
    }
    Ok(())
}

fn row(task: &Task, with_agent: bool, app: &mut App) -> Vec<Cell> {
    let runs = task.status == TaskStatus::Running;
    let when = match task.ended_at {
        None => format!("started {}", app.out.clock().ago(task.started_at)),
        Some(at) => app.out.clock().ago(at),
    };
    vec![
        Cell::new(Style::Id, safe::one_line(&task.id)),
        if with_agent { safe::one_line(&task.agent).into() } else { Cell::default() },
        Cell::new(style(task.status), state(task)),
        when.into(),
        task.ended_at.map(|at| took(task, at)).unwrap_or_default().into(),
        if runs { task.pid.to_string().into() } else { Cell::default() },
        safe::one_line(&task.command).into(),
    ]
}

/// How long it ran.
pub fn took(task: &Task, until: jiff::Timestamp) -> String {
    let seconds = until.duration_since(task.started_at).as_secs();
    time::exact(u64::try_from(seconds).unwrap_or(0))
}
