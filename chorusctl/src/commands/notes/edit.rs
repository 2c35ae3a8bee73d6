//! `chorusctl notes edit`: changes a note.

use chorus_proto::methods::notes::{Edit, EditParams};

use super::print::write_note;
use crate::app::App;
use crate::error::Error;

/// Change the text of a note
///
/// The note counts as yours from then on: it is never changed or removed automatically.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Note as `notes list` shows it, e.g. d2, or its ID
    #[arg(value_name = "NOTE")]
    note: String,
    /// New text
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = EditParams { conversation: app.conversation(), agent: app.agent(), note: args.note, text: args.text };
    app.call_and_print::<Edit>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        app.stdout.status_line("changed")?;
        write_note(app, &result.note)
    })
}
