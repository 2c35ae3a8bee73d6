//! `chorusctl context clear`: discards the live context.

use chorus_proto::methods::context::{Clear, ClearParams, Show, ShowParams};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{confirm, terminal};

/// Discard the live conversation
///
/// Saved conversations stay. --save saves this one first and does not ask.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Save it first
    #[arg(long)]
    save: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let agent = app.agent();
    if !args.yes && !args.save {
        confirm(agent.clone(), app)?;
    }
    let params = ClearParams { conversation: app.conversation(), agent, save: args.save };
    app.call_and_print::<Clear>(&params, |app, result| {
        if let Some(session) = &result.saved {
            format::print_saved(&mut app.stdout, session)?;
        }
        let what = describe_contents(result.discarded, result.pins);
        let line = match (what.is_empty(), &result.saved) {
            (true, _) => "the conversation is already empty".to_owned(),
            (false, None) => format!("discarded {what}"),
            (false, Some(_)) => format!("cleared {what}"),
        };
        app.stdout.status_line(&line)
    })
}

fn confirm(agent: Option<String>, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("context clear"));
    }
    let conversation = app.conversation();
    let shown = app.call::<Show>(&ShowParams { agent, conversation, limit: Some(0), ..ShowParams::default() })?;
    let pins = shown.working_set.pinned_facts.len() as u64;
    let question = match shown.context {
        Some(context) if context.messages > 0 && pins > 0 => {
            format!("{}; {}", format::context(&context), describe_contents(0, pins))
        }
        Some(context) if context.messages > 0 => format::context(&context),
        _ => describe_contents(0, pins),
    };
    if question.is_empty() {
        // The context is empty, so no confirmation is needed.
        return Ok(());
    }
    confirm::ask("context clear", &format!("Discard the conversation of {} ({question})?", shown.agent_name))
}

/// Formats `3 messages and 2 pinned facts`; empty if both are 0.
fn describe_contents(messages: u64, pins: u64) -> String {
    let parts = [(messages, "message"), (pins, "pinned fact")];
    let parts: Vec<_> = parts.iter().filter(|(number, _)| *number > 0).map(|(n, what)| pluralize(*n, what)).collect();
    parts.join(" and ")
}
