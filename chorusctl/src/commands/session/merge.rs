//! `chorusctl session merge`: merges two sessions into a new live context.

use chorus_proto::command_text::add_target;
use chorus_proto::methods::session_branching::{Merge, MergeParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::units::pluralize;

/// Merge two branches into a new conversation
///
/// It starts with the messages that both share and a summary of each branch, written by the agent's model or, without one, extracted from
/// the conversation. Facts and decisions of both are kept; conflicting ones are listed. Unsaved messages of the live conversation are
/// saved first, and both sessions are unchanged. Sessions are named as for `restore`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// First branch, which the new conversation continues
    #[arg(value_name = "SESSION")]
    a: String,
    /// Second branch
    #[arg(value_name = "SESSION")]
    b: String,
    /// Start it as a new conversation with this name; the live one is unchanged
    #[arg(long, value_name = "NAME")]
    as_conversation: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = MergeParams {
        as_conversation: args.as_conversation,
        conversation: app.conversation(),
        agent: app.agent(),
        a: args.a,
        b: args.b,
        own: app.global.agent.is_none(),
    };
    app.call_and_print::<Merge>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        format::print_saved_first(&mut app.stdout, result.saved_first.as_ref())?;
        let [a, b] = [&result.a, &result.b].map(|session| format::session_name(&app.stdout, session));
        let common = pluralize(result.common, "shared message");
        let into = format::into_conversation(params.as_conversation.as_deref());
        let line = format!("merged {a} and {b}{into}: {common} plus a summary of both branches");
        app.stdout.status_line(&line)?;
        format::print_paragraph(&mut app.stdout, &result.account)?;
        format::print_destination(&mut app.stdout, params.as_conversation.as_deref())?;
        if !result.conflicts.is_empty() {
            let conflicts = pluralize(result.conflicts.len() as u64, "conflict");
            app.stderr.warning(&format!("{conflicts} to resolve; nothing was decided for you"));
            let hint = "see them: chorusctl notes list --kind conflict; then: chorusctl notes resolve N --keep A|B";
            app.stderr.hint(&add_target(hint, None, params.as_conversation.as_deref()));
        }
        Ok(())
    })
}
