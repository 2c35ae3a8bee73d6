//! `chorusctl session delete`.

use chorus_proto::methods::session::{Delete, DeleteParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::safe;

/// Move a saved conversation to the trash
///
/// `chorusctl trash restore` brings it back. A live conversation that was restored from it goes on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session
    session: String,
}

/// Deletes it.
///
/// # Errors
/// Why it is still there.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = DeleteParams { agent: app.agent(), session: args.session, own: app.global.agent.is_none() };
    app.answer::<Delete>(&params, |app, deleted| {
        let line = format!("deleted {}", describe::session(&app.out, &deleted.session));
        app.out.done(&line)?;
        if app.out.quiet() {
            return Ok(());
        }
        match deleted.trash {
            Some(entry) => {
                let short = entry.split_once('_').and_then(|(_, uuid)| uuid.get(..8)).unwrap_or(&entry);
                writeln!(app.out, "  back with: chorusctl trash restore {}", safe::one_line(short))
            }
            None => writeln!(app.out, "  its file was gone already"),
        }
    })
}
