//! `chorusctl context clear`.

use chorus_proto::methods::context::{Clear, ClearParams, Show, ShowParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::words::count;
use crate::ui::{ask, terminal};

/// Discard the live conversation
///
/// What was saved stays. With --save it is saved first, and nothing is asked.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Save first
    #[arg(long)]
    save: bool,
}

/// Clears it.
///
/// # Errors
/// Why it was not cleared.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let agent = app.agent();
    if !args.yes && !args.save {
        confirm(agent.clone(), app)?;
    }
    app.answer::<Clear>(&ClearParams { agent, save: args.save }, |app, result| {
        if let Some(session) = &result.saved {
            describe::saved(&mut app.out, session)?;
        }
        let line = match (result.discarded, &result.saved) {
            (0, _) => "the context was empty already".to_owned(),
            (number, None) => format!("discarded {}", count(number, "message")),
            (number, Some(_)) => format!("cleared {}", count(number, "message")),
        };
        app.out.done(&line)
    })
}

fn confirm(agent: Option<String>, app: &mut App) -> Result<(), Failure> {
    if !terminal::interactive() {
        return Err(ask::unasked("context clear"));
    }
    let shown = app.call::<Show>(&ShowParams { agent, limit: Some(0), ..ShowParams::default() })?;
    match shown.context.filter(|context| context.messages > 0) {
        // Nothing is lost, so nothing is asked.
        None => Ok(()),
        Some(context) => {
            let held = describe::context(&context);
            ask::confirm("context clear", &format!("Discard the context of {} ({held})?", shown.agent_name))
        }
    }
}
