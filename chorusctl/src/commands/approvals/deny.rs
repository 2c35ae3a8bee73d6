//! `chorusctl approvals deny`.

use chorus_proto::methods::approvals::{Deny, DenyParams};

use crate::app::App;
use crate::error::Failure;
use crate::ui::safe;

/// Refuse an action
///
/// The model is told, and the turn goes on without it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id that `chorusctl approvals` shows
    #[arg(value_name = "ID")]
    id: String,
}

/// Refuses it.
///
/// # Errors
/// Why there is nothing to refuse.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Deny>(&DenyParams { id: args.id }, |app, done| {
        let approval = &done.approval;
        app.out.done(&format!("denied {} of {}", safe::one_line(&approval.id), safe::one_line(&approval.agent)))
    })
}
