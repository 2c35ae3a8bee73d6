//! `chorusctl conversations close`: saves and closes a conversation.

use chorus_proto::methods::conversations::{Close, CloseParams};

use crate::app::App;
use crate::commands::format;
use crate::conversation_select::SELECTED;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Save and close a conversation
///
/// Its messages are saved as a session and cleared. It is not listed any more; a message opens it again. main is always open.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Conversation [default: the one that commands use]
    name: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let conversation = args.name.or_else(|| app.conversation()).unwrap_or_else(|| SELECTED.to_owned());
    let params = CloseParams { agent: app.agent(), conversation };
    app.call_and_print::<Close>(&params, |app, result| {
        let name = sanitize::one_line(&result.conversation.name);
        let line = format!("closed {}", app.stdout.style(Style::Strong, &name));
        app.stdout.status_line(&line)?;
        let Some(session) = result.saved else { return Ok(()) };
        let line = format!("saved {}", format::session(&app.stdout, &session));
        app.stdout.status_line(&line)?;
        let short_id = sanitize::one_line(&session.short_id);
        app.stdout.status_line(&format!("  continue it: chorusctl -C {name} restore {short_id}"))
    })
}
