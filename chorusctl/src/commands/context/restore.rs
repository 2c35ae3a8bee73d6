//! `chorusctl context restore`: makes a saved session the live context again.

use std::io::IsTerminal as _;

use chorus_proto::methods::agent;
use chorus_proto::methods::context::{Restore, RestoreParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::sanitize;

/// Load a saved conversation
///
/// Unsaved messages of the live conversation are saved first.
///
/// A session is `latest`, `latest~N`, `@` (the live one), `@NAME` (that of the conversation NAME), `-` (the one before), a number from the last `history`, an ID, a
/// name or a slug (or a unique prefix of one), a word of its title, or `tag:NAME`.
///
/// With `show`, `export` and `session diff`, `@` is the live conversation as it is now. `resume`, `session branch` and
/// `session merge` save it first. For other commands, such as `restore` and `rm`, it is the session as which it was saved last.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation
    session: String,
    /// Load only the first N messages, cut at the last point where every tool call has its result
    #[arg(long, value_name = "N")]
    at: Option<u64>,
    /// Do not save the live conversation first
    #[arg(long)]
    discard: bool,
    /// Load it into a new conversation with this name; the live one is unchanged
    #[arg(long, value_name = "NAME")]
    as_conversation: Option<String>,
    /// Also restore the workspace files (as a new commit); refused if uncommitted changes would be lost
    #[arg(long)]
    files: bool,
}

impl Args {
    /// Returns the arguments that restore `session`, or the part of it up to message `at`.
    #[must_use]
    pub fn up_to(session: String, at: Option<u64>) -> Self {
        Self { session, at, discard: false, as_conversation: None, files: false }
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.needed_session = Some(args.session.clone());
    let params = RestoreParams {
        as_conversation: args.as_conversation,
        conversation: app.conversation(),
        agent: app.agent(),
        session: args.session,
        at: args.at,
        discard: args.discard,
        own: app.global.agent.is_none(),
        files: args.files,
    };
    app.call_and_print::<Restore>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        format::print_saved_first(&mut app.stdout, result.saved_first.as_ref())?;
        let how_many = format::loaded_messages(result.messages, &result.session);
        let into = format::into_conversation(params.as_conversation.as_deref());
        let line = format!("restored {}{into}: {how_many}", format::session_name(&app.stdout, &result.session));
        app.stdout.status_line(&line)?;
        if let Some(commit) = &result.files_commit {
            let line = format!("restored the workspace files (commit {})", sanitize::one_line(commit));
            app.stdout.status_line(&line)?;
        }
        format::print_paragraph(&mut app.stdout, result.session.header.summary.as_deref().unwrap_or_default())?;
        format::print_destination(&mut app.stdout, params.as_conversation.as_deref())?;
        hint_at_missing_model(app)
    })
}

/// Tells a person whose agent has no model how to get one before the first message fails.
fn hint_at_missing_model(app: &mut App) -> Result<(), Error> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(());
    }
    let params = agent::ShowParams { name: app.agent() };
    // Not essential: the conversation is loaded.
    if let Ok(shown) = app.client()?.call::<agent::Show>(&params)
        && shown.agent.model.is_none()
    {
        app.stdout.flush()?;
        app.stderr
            .hint("it has no model yet: `chorusctl models add NAME URL` adds models, `chorusctl models` lists them");
    }
    Ok(())
}
