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
        let what = held(result.discarded, result.pins);
        let line = match (what.is_empty(), &result.saved) {
            (true, _) => "the context was empty already".to_owned(),
            (false, None) => format!("discarded {what}"),
            (false, Some(_)) => format!("cleared {what}"),
        };
        app.out.done(&line)
    })
}

fn confirm(agent: Option<String>, app: &mut App) -> Result<(), Failure> {
    if !terminal::interactive() {
        return Err(ask::unasked("context clear"));
    }
    let shown = app.call::<Show>(&ShowParams { agent, limit: Some(0), ..ShowParams::default() })?;
    let pins = shown.working_set.pinned_facts.len() as u64;
    let question = match shown.context {
        Some(context) if context.messages > 0 && pins > 0 => {
            format!("{}; {}", describe::context(&context), held(0, pins))
        }
        Some(context) if context.messages > 0 => describe::context(&context),
        _ => held(0, pins),
    };
    if question.is_empty() {
        // Nothing is lost, so nothing is asked.
        return Ok(());
    }
    ask::confirm("context clear", &format!("Discard the context of {} ({question})?", shown.agent_name))
}

/// `3 messages and 2 pinned facts`; empty where there is nothing.
fn held(messages: u64, pins: u64) -> String {
    let parts = [(messages, "message"), (pins, "pinned fact")];
    let parts: Vec<_> = parts.iter().filter(|(number, _)| *number > 0).map(|(n, what)| count(*n, what)).collect();
    parts.join(" and ")
}
