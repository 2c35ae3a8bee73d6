//! `chorusctl memory remove`.

use chorus_proto::methods::memory::{Remove, RemoveParams};

use crate::app::App;
use crate::error::Failure;
use crate::ui::{Style, safe};

/// Move something remembered to the trash
///
/// No model is shown it from then on. `chorusctl trash restore` brings it back.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The entry: its id, or a beginning of that
    #[arg(value_name = "ID")]
    id: String,
}

/// Removes it.
///
/// # Errors
/// Why it is still remembered.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Remove>(&RemoveParams { agent: app.agent(), id: args.id }, |app, removed| {
        let id = safe::one_line(&removed.entry.short_id);
        let line = format!("removed {}: {}", app.out.paint(Style::Id, &id), super::what(&removed.entry));
        app.out.done(&line)?;
        if app.out.quiet() { Ok(()) } else { writeln!(app.out, "  back with: chorusctl trash restore {id}") }
    })
}
