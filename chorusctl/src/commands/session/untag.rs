//! `chorusctl session untag`.

use chorus_proto::methods::session::{TagParams, Untag};

use super::tag::told;
use crate::app::App;
use crate::error::Failure;

/// Take tags off a saved conversation
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session
    session: String,
    /// The tags
    #[arg(required = true, value_name = "TAG")]
    tags: Vec<String>,
}

/// Takes them off.
///
/// # Errors
/// Why they are still there.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params =
        TagParams { agent: app.agent(), session: args.session, own: app.global.agent.is_none(), tag: args.tags };
    app.answer::<Untag>(&params, told)
}
