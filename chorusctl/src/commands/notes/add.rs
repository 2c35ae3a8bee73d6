//! `chorusctl notes add`: adds a note.

use chorus_proto::methods::notes::{Add, AddParams, NoteKind, NoteScope};

use super::print::{Scope, write_note};
use crate::app::App;
use crate::commands::{format, text_input};
use crate::error::Error;
use crate::ui::units::pluralize;

/// Add a fact, a decision, a task or a file
///
/// The agent's model sees it from now on, as data. Short forms: `context pin` for a fact of this conversation, `memory add` for a fact of
/// the agent or its project.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Text, one or two sentences; `-` reads standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: String,
    /// A fact (default)
    #[arg(long, group = "kind")]
    fact: bool,
    /// A decision
    #[arg(long, group = "kind")]
    decision: bool,
    /// An open task
    #[arg(long, group = "kind")]
    task: bool,
    /// The path of a file
    #[arg(long, group = "kind")]
    file: bool,
    /// Scope of a fact [default: here]
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// File or folder in the agent's workspace that a fact of the agent or project is about
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Redact secrets (default: keep and report them)
    #[arg(long)]
    redact: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let text = match text_input::text_argument(Some(args.text), "notes add", "add")? {
        Some(text) => text,
        None => text_input::read_stdin()?,
    };
    let kind = match (args.decision, args.task, args.file) {
        (true, ..) => NoteKind::Decision,
        (_, true, _) => NoteKind::Task,
        (_, _, true) => NoteKind::File,
        _ => NoteKind::Fact,
    };
    let redact = args.redact;
    let scope = args.scope.map(NoteScope::from);
    let params = AddParams {
        conversation: app.conversation(),
        agent: app.agent(),
        kind: Some(kind),
        text,
        scope,
        path: args.path,
        redact,
    };
    app.call_and_print::<Add>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        app.stdout.status_line(if result.added { "added" } else { "already known" })?;
        write_note(app, &result.note)?;
        match result.secrets_found {
            0 => {}
            found if redact => app.stderr.line(&format!("redacted {}", pluralize(found, "secret"))),
            found => app.stderr.hint(&format!("{}; use --redact to remove secrets", format::found_secrets(found))),
        }
        Ok(())
    })
}
