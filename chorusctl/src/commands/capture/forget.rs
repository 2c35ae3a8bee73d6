//! `chorusctl capture forget`: deletes a conversation for capture too, or takes that back.

use chorus_proto::methods::capture::{Forget, ForgetParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;

/// Delete a conversation, and never capture it again
///
/// All its sessions move to the trash. A conversation that you delete with `rm` or `session purge` is not captured again either;
/// --undo takes that back.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation, or the ID that its program has for it
    #[arg(value_name = "SESSION|ID", required_unless_present = "undo")]
    forgotten: Option<String>,
    /// Capture it again, by the ID of its program; without one, all that were deleted
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { forgotten, undo } = args;
    app.call_and_print::<Forget>(&ForgetParams { conversation: forgotten, undo }, |app, done| {
        let conversations = pluralize(done.conversations, "conversation");
        app.stdout.status_line(&match undo {
            true => format!("capturing {conversations} again, if the transcripts are still there"),
            false => format!("forgot {conversations}; {} moved to the trash", pluralize(done.sessions, "session")),
        })
    })
}
