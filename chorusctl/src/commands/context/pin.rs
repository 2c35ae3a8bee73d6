//! `chorusctl context pin`.

use chorus_proto::Item;
use chorus_proto::methods::context::{Pin, PinParams};

use crate::app::App;
use crate::error::Failure;
use crate::ui::{Out, safe};

/// Pin a fact, so that it stays in view
///
/// Pinned facts are kept with the conversation through saves and restores; `context clear` drops them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The fact, one sentence or two
    fact: String,
}

/// Pins it.
///
/// # Errors
/// Why it was not pinned.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = PinParams { agent: app.agent(), fact: args.fact };
    app.answer::<Pin>(&params, |app, result| {
        app.out.done(&format!("pinned as number {}", result.pinned_facts.len()))?;
        list(&mut app.out, &result.pinned_facts)
    })
}

/// Writes pinned facts with their numbers.
///
/// # Errors
/// Where the output cannot be written.
pub fn list(out: &mut Out, facts: &[Item]) -> Result<(), Failure> {
    for (index, fact) in facts.iter().enumerate() {
        writeln!(out, "  {}  {}", index + 1, safe::one_line(&fact.text))?;
    }
    Ok(())
}
