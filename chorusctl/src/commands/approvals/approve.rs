//! `chorusctl approvals approve`: approves an action.

use chorus_proto::methods::approvals::{Approve, ApproveParams, ApproveResult};
use chorus_proto::methods::permissions::AgentRuleKind;

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Approve an action, once or always
///
/// Approves this action, once. --always also adds a rule for the agent, so that exactly this action no longer needs approval. --pattern
/// adds a rule for each pattern that the question shows, such as `git status *`. `chorusctl permissions rules` lists and removes rules.
/// --turn also approves everything else that this turn asks about. An action that a rule of the profile denies, or a command that cannot be
/// analyzed completely, cannot be approved permanently.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  chorusctl approvals approve k7mq2x\n  chorusctl approvals approve k7mq2x --pattern"
)]
pub struct Args {
    /// ID, as shown by `chorusctl approvals`
    #[arg(value_name = "ID")]
    id: String,
    /// Also allow exactly this action from now on
    #[arg(long, group = "scope")]
    always: bool,
    /// Also allow from now on what the patterns of the question cover
    #[arg(long, group = "scope")]
    pattern: bool,
    /// Also allow everything else that this turn asks about
    #[arg(long, group = "scope")]
    turn: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { id, always, pattern, turn } = args;
    app.call_and_print::<Approve>(&ApproveParams { id, always, pattern, turn, hash: None }, |app, done| {
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

/// Describes what an approval allows besides the action. Empty for a single approval.
#[must_use]
pub fn describe_consequences(done: &ApproveResult) -> Vec<String> {
    let agent = sanitize::one_line(&done.approval.agent);
    if done.turn {
        return vec![format!("{agent} does not ask again in this turn")];
    }
    if !done.always {
        return Vec::new();
    }
    let patterns: Vec<_> = done.rules.iter().filter(|rule| rule.kind == AgentRuleKind::Command).collect();
    let what = match patterns.as_slice() {
        [] => "may now do exactly this without asking".to_owned(),
        patterns => {
            let patterns: Vec<_> =
                patterns.iter().map(|rule| format!("`{}`", sanitize::one_line(&rule.rule))).collect();
            format!("may now run {} without asking", patterns.join(" and "))
        }
    };
    vec![format!("{agent} {what}"), format!("hint: to see and remove its rules: chorusctl permissions rules {agent}")]
}
