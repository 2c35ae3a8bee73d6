//! `chorusctl agent use`: chooses the default agent.

use chorus_proto::methods::agent::{Use, UseParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Set the default agent
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Use>(&UseParams { name: args.name }, |app, chosen| {
        let name = &chosen.agent.name;
        let line = format!("using {}", app.stdout.style(Style::Strong, &sanitize::one_line(name)));
        app.stdout.status_line(&line)?;
        // Warn if CHORUS_AGENT or the current directory overrides the choice, which would otherwise seem to have no
        // effect.
        if let Some(other) = app.agent().filter(|other| other != name && app.global.agent.is_none()) {
            app.stderr.warning(&format!("{other} is still used here: set by CHORUS_AGENT or the current directory"));
        }
        Ok(())
    })
}
