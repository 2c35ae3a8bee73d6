//! `chorusctl session merge`.

use chorus_proto::methods::tree::{Merge, MergeParams};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::words::count;

/// Bring two lines of work together in a new live conversation
///
/// It begins with the messages that both have, and an account of what each did since: by the agent's model, or without one in the
/// conversation's own words. Facts and decisions of both are kept; where they contradict each other both stay and are listed. Unsaved
/// messages of the live conversation are saved first, both sessions stay as they are. A session is named as for `session show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session to go on from
    #[arg(value_name = "SESSION")]
    a: String,
    /// The other line
    #[arg(value_name = "SESSION")]
    b: String,
}

/// Merges them.
///
/// # Errors
/// Why they were not merged.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = MergeParams { agent: app.agent(), a: args.a, b: args.b, own: app.global.agent.is_none() };
    app.answer::<Merge>(&params, |app, result| {
        for warning in &result.warnings {
            app.notes.warning(warning);
        }
        describe::saved_first(&mut app.out, result.saved_first.as_ref())?;
        let [a, b] = [&result.a, &result.b].map(|session| describe::name(&app.out, session));
        let common = count(result.common, "message");
        let line = format!("merged {a} and {b}: {common} of both, and an account");
        app.out.done(&line)?;
        describe::paragraph(&mut app.out, &result.account)?;
        if !result.conflicts.is_empty() {
            let there_are = count(result.conflicts.len() as u64, "contradiction");
            app.notes.warning(&format!("{there_are}: nothing was chosen, say which holds"));
        }
        Ok(())
    })
}
