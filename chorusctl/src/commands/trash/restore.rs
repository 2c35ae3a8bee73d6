//! `chorusctl trash restore`.

use chorus_proto::methods::trash::{Restore, RestoreParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::{Style, safe};

/// Put an agent, a session or something remembered back where it was
///
/// An agent comes back with its id and its sessions. Where its name was given to another one meanwhile, nothing is
/// changed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The entry: its id, a beginning of that, or the name (of what was remembered, the id) that it had
    id: String,
}

/// Restores it.
///
/// # Errors
/// Why it stays in the trash.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Restore>(&RestoreParams { id: args.id }, |app, back| {
        if let Some(agent) = &back.agent {
            let line = format!("restored the agent {}", app.out.paint(Style::Strong, &safe::one_line(&agent.name)));
            app.out.done(&line)?;
        }
        if let Some(session) = &back.session {
            let line = format!("restored {}", describe::session(&app.out, session));
            app.out.done(&line)?;
        }
        if let Some(entry) = &back.memory {
            let id = safe::one_line(&entry.short_id);
            app.out.done(&format!("remembered again as {}", app.out.paint(Style::Id, &id)))?;
        }
        Ok(())
    })
}
