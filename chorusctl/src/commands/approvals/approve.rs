//! `chorusctl approvals approve`: approves an action.

use chorus_proto::methods::approvals::{Approve, ApproveParams, ApproveResult};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Approve an action, once or always
///
/// Approves exactly this action, once. --always also adds it to the agent's profile, literally: the same action is not asked about
/// again. An action that a rule denies, and a command that cannot be analyzed completely, cannot be approved permanently.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  chorusctl approvals approve k7mq2x\n  chorusctl approvals approve k7mq2x --always"
)]
pub struct Args {
    /// ID, as shown by `chorusctl approvals`
    #[arg(value_name = "ID")]
    id: String,
    /// Also allow exactly this action from now on
    #[arg(long)]
    always: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Approve>(&ApproveParams { id: args.id, always: args.always, hash: None }, |app, done| {
        let approval = &done.approval;
        app.stdout.status_line(&format!(
            "approved {} for {}",
            sanitize::one_line(&approval.id),
            sanitize::one_line(&approval.agent)
        ))?;
        app.stdout.flush()?;
        for line in describe_consequences(&done) {
            app.stderr.line(&line);
        }
        done.warnings.iter().for_each(|warning| app.stderr.warning(warning));
        Ok(())
    })
}

/// Describes what a permanent approval changed. Empty for a single approval.
#[must_use]
pub fn describe_consequences(done: &ApproveResult) -> Vec<String> {
    if !done.always {
        return Vec::new();
    }
    let agent = sanitize::one_line(&done.approval.agent);
    let mut lines = vec![format!("{agent} may now do exactly this without asking")];
    if let Some(profile) = &done.profile_before {
        let profile = sanitize::one_line(profile);
        lines.push(format!("{agent} now has its own copy of the `{profile}` profile; later changes to `{profile}` will not apply to {agent}"));
    }
    lines
}
