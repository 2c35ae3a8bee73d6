//! `chorusctl approvals deny`: denies an action.

use chorus_proto::methods::approvals::{Deny, DenyParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Deny an action
///
/// The model is informed, with the reason if one is given, and the turn continues without the action.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  chorusctl approvals deny k7mq2x --reason 'push to a branch instead'")]
pub struct Args {
    /// ID, as shown by `chorusctl approvals`
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Deny>(&DenyParams { id: args.id, reason: args.reason }, |app, done| {
        let approval = &done.approval;
        app.stdout.status_line(&format!(
            "denied {} for {}",
            sanitize::one_line(&approval.id),
            sanitize::one_line(&approval.agent)
        ))
    })
}
