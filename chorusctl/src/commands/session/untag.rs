//! `chorusctl session untag`.

use chorus_proto::methods::session::Untag;

use super::tag::{Named, told};
use crate::app::App;
use crate::error::Failure;

/// Take tags off a saved conversation
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    named: Named,
}

/// Takes them off.
///
/// # Errors
/// Why they are still there.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = args.named.params(app);
    app.answer::<Untag>(&params, told)
}
