//! `chorusctl trash empty`: deletes the contents of the trash.

use chorus_proto::methods::trash::{Empty, EmptyParams, List, ListParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{confirm, terminal};

/// Permanently delete everything in the trash
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only items deleted longer ago than this, e.g. 30d
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if !args.yes {
        confirm(args.older_than.as_deref(), app)?;
    }
    app.call_and_print::<Empty>(&EmptyParams { older_than: args.older_than }, |app, result| {
        match result.entries.len() {
            0 => app.stdout.status_line("nothing to delete"),
            entries => app.stdout.status_line(&format!("permanently deleted {}", pluralize(entries as u64, "item"))),
        }
    })
}

fn confirm(older_than: Option<&str>, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("trash empty"));
    }
    let entries = app.call::<List>(&ListParams {})?.entries.len() as u64;
    let what = match older_than {
        None if entries == 0 => return Ok(()),
        None => format!("all {} in the trash", pluralize(entries, "item")),
        Some(age) => format!("everything that was moved to the trash more than {age} ago"),
    };
    confirm::ask("trash empty", &format!("Permanently delete {what}?"))
}
