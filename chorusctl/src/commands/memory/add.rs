//! `chorusctl memory add`: adds an entry to an agent's memory.

use chorus_proto::methods::memory::{Add, AddParams};

use crate::app::App;
use crate::commands::{format, text_input};
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize};

/// Add a memory
///
/// The agent's model sees it in every conversation from now on, as data. A memory that already exists is not added twice.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Text, one or two sentences, at most 2 KiB; `-` reads standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: String,
    /// File or folder in the agent's workspace that it is about
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Share it with all agents of the agent's project
    #[arg(long)]
    project: bool,
    /// Redact secrets (default: keep and report them)
    #[arg(long)]
    redact: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let text = match text_input::text_argument(Some(args.text), "memory add", "add")? {
        Some(text) => text,
        None => text_input::read_stdin()?,
    };
    let (path, project, redact) = (args.path, args.project, args.redact);
    let params = AddParams { agent: app.agent(), text, path, project, redact };
    app.call_and_print::<Add>(&params, |app, result| {
        let id = sanitize::one_line(&result.entry.short_id);
        let id = app.stdout.style(Style::Id, &id).to_string();
        let line = match (result.added, &result.entry.project) {
            (false, _) => format!("already remembered ({id})"),
            (true, Some(project)) => format!("remembered as {id} (shared in project {})", sanitize::one_line(project)),
            (true, None) => format!("remembered as {id}"),
        };
        app.stdout.status_line(&line)?;
        if !result.entry.shown {
            app.stderr
                .warning("the memory budget is full, so the model does not see this entry: chorusctl memory list");
        }
        if result.entry.path_exists == Some(false) {
            app.stderr.line("the path does not exist yet");
        }
        match result.secrets_found {
            0 => {}
            found if redact => app.stderr.line(&format!("redacted {}", pluralize(found, "secret"))),
            found => app.stderr.hint(&format!("{}; use --redact to remove secrets", format::found_secrets(found))),
        }
        Ok(())
    })
}
