//! `chorusctl notes rm`: removes a note.

use chorus_proto::methods::notes::{Rm, RmParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Remove a note
///
/// Later compactions do not add it again. A fact of the agent or its project moves to the trash.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Note as `notes list` shows it, e.g. d2, or its ID
    #[arg(value_name = "NOTE")]
    note: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = RmParams { conversation: app.conversation(), agent: app.agent(), note: args.note };
    app.call_and_print::<Rm>(&params, |app, removed| {
        app.stdout.status_line(&format!("removed: {}", sanitize::one_line(&removed.note.text)))?;
        match removed.trash {
            Some(_) if !app.stdout.is_quiet() => {
                let id = sanitize::one_line(&removed.note.note);
                writeln!(app.stdout, "  undo: chorusctl trash restore {id}")
            }
            _ => Ok(()),
        }
    })
}
