//! `chorusctl tasks`: one module per subcommand; the default is `list`.

use chorus_proto::methods::tasks::{Task, TaskStatus};
use clap::Subcommand;

use crate::app::App;
use crate::error::Error;
use crate::ui::Style;

pub mod list;
pub mod logs;
pub mod show;
pub mod stop;

/// List, follow and stop background commands
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// List an agent's background tasks (default)
    List(list::Args),
    /// Show a task
    Show(show::Args),
    /// Show the output of a task
    Logs(logs::Args),
    /// Stop a task and wait until it has ended
    Stop(stop::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.verb.is_some() && args.list != list::Args::default() {
        return Err(Error::usage("list options cannot be used with another subcommand")
            .with_hint("chorusctl tasks list --help"));
    }
    match args.verb {
        None => list::run(&args.list, app),
        Some(Verb::List(args)) => list::run(&args, app),
        Some(Verb::Show(args)) => show::run(args, app),
        Some(Verb::Logs(args)) => logs::run(args, app),
        Some(Verb::Stop(args)) => stop::run(args, app),
    }
}

/// Formats the status and how the task ended: `failed (exit 3)`.
#[must_use]
pub fn describe_state(task: &Task) -> String {
    let word = task.status.as_str();
    match (task.exit_code, task.signal) {
        (Some(code), _) => format!("{word} (exit {code})"),
        (None, Some(signal)) => format!("{word} (signal {signal})"),
        (None, None) => word.to_owned(),
    }
}

fn status_style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Running => Style::Strong,
        TaskStatus::Completed => Style::Good,
        TaskStatus::Failed | TaskStatus::Lost => Style::Bad,
        TaskStatus::Stopped => Style::Plain,
    }
}
