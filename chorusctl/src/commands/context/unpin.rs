//! `chorusctl context unpin`.

use chorus_proto::methods::context::{Unpin, UnpinParams};

use super::pin::list;
use crate::app::App;
use crate::error::Failure;

/// Take a pinned fact out
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its number, as `context show` lists it
    n: u64,
}

/// Takes it out.
///
/// # Errors
/// Why it was not taken out.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = UnpinParams { agent: app.agent(), n: args.n };
    app.answer::<Unpin>(&params, |app, result| {
        app.out.done("unpinned")?;
        list(&mut app.out, &result.pinned_facts)
    })
}
