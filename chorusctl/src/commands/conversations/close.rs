//! `chorusctl conversations close`: saves and closes a conversation.

use chorus_proto::methods::conversations::{Close, CloseParams, List, ListParams};
use uuid::Uuid;

use crate::app::App;
use crate::commands::format;
use crate::conversation_select::{MAIN, SELECTED};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
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
    let used = if app.stdout.format() == OutputFormat::Text { selected(app)? } else { None };
    let params = CloseParams { agent: app.agent(), conversation };
    app.call_and_print::<Close>(&params, |app, result| {
        let name = sanitize::one_line(&result.conversation.name);
        let line = format!("closed {}", app.stdout.style(Style::Strong, &name));
        app.stdout.status_line(&line)?;
        if used == Some(result.conversation.id) {
            app.stdout.status_line("commands use main again")?;
        }
        let Some(session) = result.saved else { return Ok(()) };
        let line = format!("saved {}", format::session(&app.stdout, &session));
        app.stdout.status_line(&line)?;
        let short_id = sanitize::one_line(&session.short_id);
        app.stdout.status_line(&format!("  continue it: chorusctl -C {name} restore {short_id}"))
    })
}

/// Returns the conversation that was set with `conversations use`; `None` if it is `main`.
fn selected(app: &mut App) -> Result<Option<Uuid>, Error> {
    let list = ListParams { agent: app.agent(), ..ListParams::default() };
    let conversations = app.call::<List>(&list)?.conversations;
    Ok(conversations.iter().find(|one| one.selected && one.name != MAIN).map(|one| one.id))
}
