//! `chorusctl memory add`.

use chorus_proto::methods::memory::{Add, AddParams};

use crate::app::App;
use crate::commands::given;
use crate::error::Failure;
use crate::ui::words::count;
use crate::ui::{Style, safe};

/// Have an agent remember something
///
/// It is part of what the agent's model is told in every conversation from now on, as data. What is remembered already is
/// not added twice.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A sentence or two, at most 2 KiB; `-` reads standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: String,
    /// A file or folder in the agent's workspace that it is about
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Share it with all agents of the agent's project
    #[arg(long)]
    project: bool,
    /// Replace secrets such as keys and tokens; else they are kept and counted
    #[arg(long)]
    redact: bool,
}

/// Adds it.
///
/// # Errors
/// Why it was not added.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let text = match given::argument(Some(args.text), "memory add", "remember")? {
        Some(text) => text,
        None => given::standard_input()?,
    };
    let (path, project, redact) = (args.path, args.project, args.redact);
    let params = AddParams { agent: app.agent(), text, path, project, redact };
    app.answer::<Add>(&params, |app, result| {
        let id = safe::one_line(&result.entry.short_id);
        let id = app.out.paint(Style::Id, &id).to_string();
        let line = match (result.added, &result.entry.project) {
            (false, _) => format!("remembered already: {id}"),
            (true, Some(project)) => format!("remembered as {id}, shared in {}", safe::one_line(project)),
            (true, None) => format!("remembered as {id}"),
        };
        app.out.done(&line)?;
        if !result.entry.shown {
            app.notes.warning("there is no room for it in what the model is shown: chorusctl memory list");
        }
        if result.entry.path_exists == Some(false) {
            app.notes.line("the path is not there (yet)");
        }
        match result.secrets_found {
            0 => {}
            found if redact => app.notes.line(&format!("{} replaced", count(found, "secret"))),
            found => {
                app.notes.hint(&format!("{} in it, kept as they came; --redact replaces them", count(found, "secret")))
            }
        }
        Ok(())
    })
}
