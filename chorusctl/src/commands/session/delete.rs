//! `chorusctl session delete`: moves a session to the trash.

use chorus_proto::methods::session::{Delete, DeleteParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::sanitize;

/// Move a saved conversation to the trash
///
/// `chorusctl trash restore` restores it. A live conversation that was loaded from it continues.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation
    session: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = DeleteParams {
        conversation: app.conversation(),
        agent: app.agent(),
        session: args.session,
        own: app.global.agent.is_none(),
    };
    app.call_and_print::<Delete>(&params, |app, deleted| {
        let line = format!("deleted {}", format::session(&app.stdout, &deleted.session));
        app.stdout.status_line(&line)?;
        if app.stdout.is_quiet() {
            return Ok(());
        }
        match deleted.trash {
            Some(entry) => {
                let short = entry.split_once('_').and_then(|(_, uuid)| uuid.get(..8)).unwrap_or(&entry);
                writeln!(app.stdout, "  undo: chorusctl trash restore {}", sanitize::one_line(short))
            }
            None => writeln!(app.stdout, "  its file was already missing"),
        }
    })
}
