//! `chorusctl tasks show`: prints one task.

use chorus_proto::methods::tasks::{Show, ShowParams, Task};

use super::list::format_run_time;
use super::{describe_state, status_style};
use crate::app::App;
use crate::error::Error;
use crate::ui::{Stdout, Style, sanitize};

/// Show a task
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Task, e.g. t12
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Show>(&ShowParams { id: args.id }, |app, shown| print_task(&mut app.stdout, &shown.task))
}

fn print_task(out: &mut Stdout, task: &Task) -> Result<(), Error> {
    let (id, agent) = (sanitize::one_line(&task.id), sanitize::one_line(&task.agent));
    let (id, state) = (out.style(Style::Id, &id), describe_state(task));
    let first = format!("{id}  {}  agent {agent}", out.style(status_style(task.status), &state));
    writeln!(out, "{first}")?;
    let started = format!("{}, {}", out.clock().local_date_time(task.started_at), out.clock().ago(task.started_at));
    writeln!(out, "started  {started}")?;
    match task.ended_at {
        None => writeln!(out, "pid      {}", task.pid)?,
        Some(at) => {
            let ended = format!("{}, after {}", out.clock().local_date_time(at), format_run_time(task, at));
            writeln!(out, "ended    {ended}")?;
        }
    }
    writeln!(out, "log      {}", sanitize::one_line(&task.log_path))?;
    let command = sanitize::multi_line(task.command.trim_end()).replace('\n', "\n         ");
    writeln!(out, "command  {command}")
}
