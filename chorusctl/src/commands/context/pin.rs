//! `chorusctl context pin`: pins a fact in the context.

use chorus_proto::Item;
use chorus_proto::methods::context::{Pin, PinParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Stdout, sanitize};

/// Pin a fact that the model always sees
///
/// Pinned facts stay with the conversation through saves and restores; `context clear` removes them. This is short for `notes add`, which
/// also adds facts that the agent knows in every conversation.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fact, one or two sentences
    fact: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = PinParams { conversation: app.conversation(), agent: app.agent(), fact: args.fact };
    app.call_and_print::<Pin>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        app.stdout.status_line(&format!("pinned as number {}", result.pinned_facts.len()))?;
        write_pinned_facts(&mut app.stdout, &result.pinned_facts)
    })
}

/// Writes pinned facts with their numbers.
pub fn write_pinned_facts(out: &mut Stdout, facts: &[Item]) -> Result<(), Error> {
    for (index, fact) in facts.iter().enumerate() {
        writeln!(out, "  {}  {}", index + 1, sanitize::one_line(&fact.text))?;
    }
    Ok(())
}
