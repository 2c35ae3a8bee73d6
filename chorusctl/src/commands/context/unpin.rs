//! `chorusctl context unpin`: removes a pinned fact.

use chorus_proto::methods::context::{Unpin, UnpinParams};

use super::pin::write_pinned_facts;
use crate::app::App;
use crate::error::Error;

/// Take a pinned fact out
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its number, as `context show` lists it
    n: u64,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = UnpinParams { agent: app.agent(), n: args.n };
    app.call_and_print::<Unpin>(&params, |app, result| {
        app.stdout.status_line("unpinned")?;
        write_pinned_facts(&mut app.stdout, &result.pinned_facts)
    })
}
