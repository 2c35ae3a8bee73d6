//! `chorusctl memory remove`: moves a memory entry to the trash.

use chorus_proto::methods::memory::{Remove, RemoveParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Move a memory to the trash
///
/// No model sees it any more. `chorusctl trash restore` restores it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// ID of the memory, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Remove>(&RemoveParams { agent: app.agent(), id: args.id }, |app, removed| {
        let id = sanitize::one_line(&removed.entry.short_id);
        let line = format!("removed {}: {}", app.stdout.style(Style::Id, &id), super::entry_summary(&removed.entry));
        app.stdout.status_line(&line)?;
        if app.stdout.is_quiet() { Ok(()) } else { writeln!(app.stdout, "  undo: chorusctl trash restore {id}") }
    })
}
