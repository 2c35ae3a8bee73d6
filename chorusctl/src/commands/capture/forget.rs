//! `chorusctl capture forget`: deletes a conversation for capture too, or takes that back.

use chorus_proto::methods::capture::{Forget, ForgetParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::pluralize;

/// Delete a conversation, and never capture it again
///
/// All its sessions move to the trash. A conversation that you delete with `rm`, `session purge` or `agent destroy` is not captured
/// again either; --undo takes that back. `chorusctl trash restore` does that, too, and restores the session.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation, or the ID that its program has for it
    #[arg(value_name = "SESSION|ID", required_unless_present = "undo")]
    forgotten: Option<String>,
    /// Capture it again, by the ID of its program or of a session in the trash; without one, all that were deleted
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { forgotten, undo } = args;
    app.call_and_print::<Forget>(&ForgetParams { conversation: forgotten, undo }, |app, done| {
        let conversations = pluralize(done.conversations, "conversation");
        if undo {
            return app.stdout.status_line(&match done.conversations {
                0 => "nothing to undo: no conversation was deleted".to_owned(),
                _ => format!("{conversations} can be captured again, if the transcripts are still there"),
            });
        }
        let sessions = pluralize(done.sessions, "session");
        app.stdout.status_line(&format!("forgot {conversations}; {sessions} moved to the trash"))?;
        if let Some(id) = done.conversation {
            app.stdout.status_line(&format!("  undo: chorusctl capture forget --undo {}", sanitize::one_line(&id)))?;
        }
        Ok(())
    })
}
