//! `chorusctl agent use`.

use chorus_proto::methods::agent::{Use, UseParams};

use crate::app::App;
use crate::error::Failure;
use crate::ui::{Style, safe};

/// Choose the agent that is meant when none is named
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    name: String,
}

/// Chooses it.
///
/// # Errors
/// Why it was not chosen.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Use>(&UseParams { name: args.name }, |app, chosen| {
        let name = &chosen.agent.name;
        let line = format!("using {}", app.out.paint(Style::Strong, &safe::one_line(name)));
        app.out.done(&line)?;
        // What wins over the choice here and now would make it look broken.
        if let Some(other) = app.agent().filter(|other| other != name && app.global.agent.is_none()) {
            app.notes.warning(&format!("here {other} is still meant: CHORUS_AGENT or the current directory says so"));
        }
        Ok(())
    })
}
