//! `chorusctl agent destroy`: saves an agent's context and removes the agent.

use chorus_proto::methods::agent::{Destroy, DestroyParams, Show, ShowParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::{Style, confirm, sanitize, terminal, units};

/// Save an agent's conversation and delete the agent
///
/// Saves the live conversation first, then moves the agent's directory to the trash, unless you keep or purge it. The name can be
/// used again. Its sessions count as deleted: conversations of other programs among them are not captured again, until the agent is
/// restored or `chorusctl capture forget --undo` allows it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent
    name: String,
    /// Keep its directory; `agent init` restores the agent from it
    #[arg(long, conflicts_with = "purge")]
    keep_files: bool,
    /// Permanently delete its directory with all sessions instead of moving it to the trash
    #[arg(long)]
    purge: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if !args.yes {
        confirm(&args, app)?;
    }
    let (keep_files, purge) = (args.keep_files, args.purge);
    let params = DestroyParams { name: args.name, keep_files, purge };
    app.call_and_print::<Destroy>(&params, |app, destroyed| {
        if let Some(session) = &destroyed.saved {
            format::print_saved(&mut app.stdout, session)?;
        }
        let line = format!("deleted {}", app.stdout.style(Style::Strong, &sanitize::one_line(&destroyed.agent.name)));
        app.stdout.status_line(&line)?;
        for warning in &destroyed.warnings {
            app.stderr.warning(warning);
        }
        if destroyed.agent.import_source.is_some() && !app.stdout.is_quiet() {
            let allow = if purge { "" } else { ", or the agent is restored" };
            writeln!(
                app.stdout,
                "  its conversations are not captured again, until you allow it (chorusctl capture forget --undo){allow}"
            )?;
        }
        match destroyed.files {
            Some(files) if keep_files && !app.stdout.is_quiet() => {
                writeln!(app.stdout, "  kept its files in {}", sanitize::one_line(&files))
            }
            // What a purge could not delete is in the warning.
            Some(_) if !purge && !app.stdout.is_quiet() => {
                let name = sanitize::one_line(&destroyed.agent.name);
                writeln!(app.stdout, "  moved to trash (undo: chorusctl trash restore {name})")
            }
            _ => Ok(()),
        }
    })
}

fn confirm(args: &Args, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("agent destroy"));
    }
    let shown = app.call::<Show>(&ShowParams { name: Some(args.name.clone()) })?;
    let what = match (args.purge, args.keep_files) {
        (true, _) => "and permanently delete its files",
        (_, true) => "and keep its files",
        _ => "and move its files to the trash",
    };
    let sessions = units::pluralize(shown.sessions, "session");
    let captured = shown.agent.import_source.is_some().then(|| {
        let conversations = "It holds the captured and imported conversations of its program";
        format!("{conversations}. They will count as deleted, and not be captured again.")
    });
    let captured: Vec<_> = captured.into_iter().collect();
    confirm::ask_about("agent destroy", &captured, &format!("Delete {} ({sessions}) {what}?", shown.agent.name))
}
