//! `chorusctl session branch`: continues from a session in a second context.

use chorus_proto::methods::session_branching::{Branch, BranchParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::pluralize;

/// Start a branch from a saved conversation
///
/// The branch becomes the live conversation of this agent, or of the one that --as names. Unsaved messages of that agent's live
/// conversation are saved first. The session, and conversations that continue it, are unchanged. The session is named as for `restore`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation
    session: String,
    /// Load only the first N messages, cut at the last point where every tool call has its result
    #[arg(long, value_name = "N")]
    at: Option<u64>,
    /// Agent that continues the branch [default: this agent]
    #[arg(long = "as", value_name = "AGENT", id = "as")]
    goes_on: Option<String>,
    /// Start it as a new conversation with this name; the live one is unchanged
    #[arg(long, value_name = "NAME")]
    as_conversation: Option<String>,
}

impl Args {
    /// Returns the arguments that branch from `session`, after message `at` or after the last.
    #[must_use]
    pub fn from_message(session: String, at: Option<u64>) -> Self {
        Self { session, at, goes_on: None, as_conversation: None }
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = BranchParams {
        as_conversation: args.as_conversation,
        conversation: app.conversation(),
        agent: app.agent(),
        session: args.session,
        own: app.global.agent.is_none(),
        at: args.at,
        as_agent: args.goes_on,
    };
    app.call_and_print::<Branch>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        format::print_saved_first(&mut app.stdout, result.saved_first.as_ref())?;
        let from = format::session_name(&app.stdout, &result.session);
        let at = match result.session.header.message_count {
            all if result.messages == all => format!("after {}", pluralize(all, "message")),
            all => format!("at message {} of {all}", result.messages),
        };
        let into = format::into_conversation(params.as_conversation.as_deref());
        let line = format!("{}: branched from {from} {at}{into}", sanitize::one_line(&result.agent));
        app.stdout.status_line(&line)?;
        format::print_destination(&mut app.stdout, params.as_conversation.as_deref())
    })
}
