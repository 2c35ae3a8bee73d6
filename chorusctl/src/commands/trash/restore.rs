//! `chorusctl trash restore`: restores an entry of the trash.

use chorus_proto::methods::trash::{Restore, RestoreParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize};

/// Restore an agent, a session or a memory
///
/// An agent is restored with its ID and sessions. If its name is in use by another agent now, nothing is changed; but if
/// both hold the captured conversations of the same program, the sessions move to that agent. A session whose name
/// is taken gets a free one, such as `NAME-2`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// ID of the trashed item or a prefix of it, or its former name (for a memory, its former ID)
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Restore>(&RestoreParams { id: args.id }, |app, back| {
        if let Some(agent) = &back.agent {
            let line = format!("restored agent {}", app.stdout.style(Style::Strong, &sanitize::one_line(&agent.name)));
            app.stdout.status_line(&line)?;
            if let Some(left) = back.left {
                let left = pluralize(left, "session");
                app.stdout.status_line(&format!("{left} left in the trash: their conversations are there again"))?;
            }
        }
        if let Some(session) = &back.session {
            let named = format::session(&app.stdout, session);
            let line = match &back.former_name {
                Some(former) => format!("restored as {named}, because {} is taken", sanitize::one_line(former)),
                None => format!("restored {named}"),
            };
            app.stdout.status_line(&line)?;
        }
        if let Some(entry) = &back.memory {
            let id = sanitize::one_line(&entry.short_id);
            app.stdout.status_line(&format!("restored memory {}", app.stdout.style(Style::Id, &id)))?;
        }
        Ok(())
    })
}
