//! `chorusctl context save`.

use chorus_proto::methods::context::{Save, SaveParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;

/// Save the conversation; it goes on
///
/// The save is on disk when this answers. Its description names the file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it was about, in a few words
    description: Option<String>,
    /// Clear the context afterwards
    #[arg(long)]
    clear: bool,
    /// Tag the session; may be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Do not wait for a generated summary
    #[arg(long)]
    no_wait: bool,
}

/// Saves it.
///
/// # Errors
/// Why it was not saved.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    // The answer carries the summary as long as the daemon makes it without a model, so there is nothing to wait for
    // either way.
    let Args { description, clear, tag, no_wait: _ } = args;
    let params = SaveParams { agent: app.agent(), description, clear, tag };
    app.answer::<Save>(&params, |app, result| {
        describe::saved(&mut app.out, &result.session)?;
        if result.cleared { app.out.done("the context is clear") } else { Ok(()) }
    })
}
