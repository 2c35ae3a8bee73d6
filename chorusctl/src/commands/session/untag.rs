//! `chorusctl session untag`: removes tags from a session.

use chorus_proto::methods::session::Untag;

use super::tag::{SessionTags, print_tags};
use crate::app::App;
use crate::error::Error;

/// Remove tags from a saved conversation
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    named: SessionTags,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = args.named.params(app);
    app.call_and_print::<Untag>(&params, print_tags)
}
