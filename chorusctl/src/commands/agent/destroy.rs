//! `chorusctl agent destroy`.

use chorus_proto::methods::agent::{Destroy, DestroyParams, Show, ShowParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::{Style, ask, safe, terminal, words};

/// Save an agent's conversation and take the agent away
///
/// The live conversation is saved first. The agent's directory goes to the trash, unless it is kept or purged.
/// The name is free again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    name: String,
    /// Leave its directory in place; `agent init` revives it
    #[arg(long, conflicts_with = "purge")]
    keep_files: bool,
    /// Delete its directory, sessions and all, instead of moving it to the trash
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Destroys the agent.
///
/// # Errors
/// Why it was not destroyed.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    if !args.yes {
        confirm(&args, app)?;
    }
    let params = DestroyParams { name: args.name, keep_files: args.keep_files, purge: args.purge };
    app.answer::<Destroy>(&params, |app, destroyed| {
        if let Some(session) = &destroyed.saved {
            describe::saved(&mut app.out, session)?;
        }
        let line = format!("destroyed {}", app.out.paint(Style::Strong, &safe::one_line(&destroyed.agent.name)));
        app.out.done(&line)?;
        for warning in &destroyed.warnings {
            app.notes.warning(warning);
        }
        match destroyed.files {
            Some(files) if !app.out.quiet() => writeln!(app.out, "  its files are in {}", safe::one_line(&files)),
            _ => Ok(()),
        }
    })
}

fn confirm(args: &Args, app: &mut App) -> Result<(), Failure> {
    if !terminal::interactive() {
        return Err(ask::unasked("agent destroy"));
    }
    let shown = app.call::<Show>(&ShowParams { name: Some(args.name.clone()) })?;
    let what = match (args.purge, args.keep_files) {
        (true, _) => "and delete its files for good",
        (_, true) => "and leave its files in place",
        _ => "and move its files to the trash",
    };
    let sessions = words::count(shown.sessions, "session");
    ask::confirm("agent destroy", &format!("Destroy {} ({sessions}) {what}?", shown.agent.name))
}
