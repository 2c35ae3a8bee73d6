//! `chorusctl cancel`.

use chorus_proto::error::exit;
use chorus_proto::methods::send::{Cancel, CancelParams, CancelResult};
use uuid::Uuid;

use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::out::Format;

/// End an agent's turn, whoever asked for it
///
/// What the model has said so far is kept, and turns that wait go on. `chorusctl status` shows which agents are in a turn. Where none
/// runs the exit status is 5.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent [default: as with --agent]
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Only this turn, running or waiting; of one that waits nothing is kept
    #[arg(long, value_name = "UUID")]
    turn: Option<Uuid>,
}

/// Ends it.
///
/// # Errors
/// Why it goes on, or that there is none.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let agent = args.agent.or_else(|| app.agent());
    cancel(CancelParams { agent, turn_id: args.turn }, app)
}

/// Ends the turn that `params` name.
///
/// # Errors
/// Why it goes on, or that there is none.
pub fn cancel(params: CancelParams, app: &mut App) -> Result<(), Failure> {
    let raw = app.call_raw::<Cancel>(&params)?;
    let text = app.out.format() == Format::Text;
    if !text {
        app.out.json_line(&raw)?;
    }
    match read::<CancelResult>(&raw)?.turn_id {
        Some(turn) if text => app.out.done(&format!("cancelled the turn {turn}; what came is kept")),
        Some(_) => Ok(()),
        None if !text => Err(Failure::told(exit::NOTHING_TO_DO)),
        None => {
            let what = if params.turn_id.is_some() { "this turn is over, or never was" } else { "no turn is running" };
            Err(Failure::new(exit::NOTHING_TO_DO, what).hint("chorusctl status shows which agents are in a turn"))
        }
    }
}
