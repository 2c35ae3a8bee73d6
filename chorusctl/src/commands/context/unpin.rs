//! `chorusctl context unpin`: removes a pinned fact.

use chorus_proto::methods::context::{Unpin, UnpinParams};

use super::pin::write_pinned_facts;
use crate::app::App;
use crate::error::Error;

/// Remove a pinned fact
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of the fact, as shown by `context show`
    n: u64,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = UnpinParams { conversation: app.conversation(), agent: app.agent(), n: args.n };
    app.call_and_print::<Unpin>(&params, |app, result| {
        app.stdout.status_line("unpinned")?;
        write_pinned_facts(&mut app.stdout, &result.pinned_facts)
    })
}
