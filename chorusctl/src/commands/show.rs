//! `chorusctl show`: prints the live conversation, or a saved one.

use crate::app::App;
use crate::commands::message_range::MessageRange;
use crate::commands::{context, session};
use crate::error::Error;

/// Show the live conversation, or a saved one
///
/// Without SESSION the same as `context show`, with SESSION the same as `session show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation, named as for `restore`; `@` is the live one, `@NAME` that of a conversation [default: the live one]
    session: Option<String>,
    #[command(flatten)]
    range: MessageRange,
    /// Show what the next request to the model would contain, and the size of each part
    #[arg(long, conflicts_with_all = ["session", "last", "at", "around"])]
    window: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.session {
        Some(session) => session::show::show_selected(app, &session, args.range),
        _ if args.window => context::show_window::run(app),
        _ => context::show::show(app, args.range),
    }
}
