//! `chorusctl tasks show`.

use chorus_proto::methods::tasks::{Show, ShowParams, Task};

use super::list::took;
use super::{state, style};
use crate::app::App;
use crate::error::Failure;
use crate::ui::{Out, Style, safe};

/// Show one task
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The task, such as t12
    #[arg(value_name = "ID")]
    id: String,
}

/// Shows it.
///
/// # Errors
/// Why there is nothing to show.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Show>(&ShowParams { id: args.id }, |app, shown| write(&mut app.out, &shown.task))
}

fn write(out: &mut Out, task: &Task) -> Result<(), Failure> {
    let (id, agent) = (safe::one_line(&task.id), safe::one_line(&task.agent));
    let (id, state) = (out.paint(Style::Id, &id), state(task));
    let first = format!("{id}  {}  of {agent}", out.paint(style(task.status), &state));
    writeln!(out, "{first}")?;
    let started = format!("{}, {}", out.clock().local(task.started_at), out.clock().ago(task.started_at));
    writeln!(out, "started  {started}")?;
    match task.ended_at {
        None => writeln!(out, "pid      {}", task.pid)?,
        Some(at) => {
            let ended = format!("{}, after {}", out.clock().local(at), took(task, at));
            writeln!(out, "ended    {ended}")?;
        }
    }
    writeln!(out, "log      {}", safe::one_line(&task.log_path))?;
    let command = safe::clean(task.command.trim_end()).replace('\n', "\n         ");
    writeln!(out, "command  {command}")
}
