//! `chorusctl conversations use`: selects the conversation that commands use.

use chorus_proto::methods::conversations::{Use, UseParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Set the conversation that commands use
///
/// It holds for this agent until another one is set; `conversations use main` goes back. -C and $CHORUS_CONVERSATION go before it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Conversation
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = UseParams { agent: app.agent(), conversation: args.name };
    app.call_and_print::<Use>(&params, |app, chosen| {
        let name = &chosen.conversation.name;
        let line = format!("using {}", app.stdout.style(Style::Strong, &sanitize::one_line(name)));
        app.stdout.status_line(&line)?;
        // Otherwise the choice would seem to have no effect.
        if let Some(other) = app.named_conversation().filter(|other| other != name && app.global.conversation.is_none())
        {
            app.stderr.warning(&format!("{other} is still used here: set by CHORUS_CONVERSATION"));
        }
        Ok(())
    })
}
