//! `chorusctl trash restore`: restores an entry of the trash.

use chorus_proto::methods::trash::{Restore, RestoreParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Put an agent, a session or something remembered back where it was
///
/// An agent comes back with its id and its sessions. Where its name was given to another one meanwhile, nothing is
/// changed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The entry: its id, a beginning of that, or the name (of what was remembered, the id) that it had
    id: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Restore>(&RestoreParams { id: args.id }, |app, back| {
        if let Some(agent) = &back.agent {
            let line =
                format!("restored the agent {}", app.stdout.style(Style::Strong, &sanitize::one_line(&agent.name)));
            app.stdout.status_line(&line)?;
        }
        if let Some(session) = &back.session {
            let line = format!("restored {}", format::session(&app.stdout, session));
            app.stdout.status_line(&line)?;
        }
        if let Some(entry) = &back.memory {
            let id = sanitize::one_line(&entry.short_id);
            app.stdout.status_line(&format!("remembered again as {}", app.stdout.style(Style::Id, &id)))?;
        }
        Ok(())
    })
}
