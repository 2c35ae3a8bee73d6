//! `chorusctl cancel`: cancels an agent's turn.

use chorus_proto::error::exit;
use chorus_proto::methods::send::{Cancel, CancelParams, CancelResult};
use uuid::Uuid;

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Cancel an agent's running turn
///
/// Keeps the partial reply; waiting turns continue. `chorusctl status` shows which agents are in a turn. The exit status is 5 if no turn is
/// running.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent [default: the current one]
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Cancel only this turn, running or waiting; a waiting one is withdrawn
    #[arg(long, value_name = "UUID")]
    turn: Option<Uuid>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let agent = args.agent.or_else(|| app.agent());
    let params = CancelParams { conversation: app.conversation(), agent, turn_id: args.turn };
    cancel_turn(params, app)
}

/// Cancels the turn of `params` and prints the result.
///
/// # Errors
/// No such turn runs or waits (exit status 5).
pub fn cancel_turn(params: CancelParams, app: &mut App) -> Result<(), Error> {
    let raw = app.call_raw::<Cancel>(&params)?;
    let is_text = app.stdout.format() == OutputFormat::Text;
    if !is_text {
        app.stdout.json_line(&raw)?;
    }
    match parse_result::<CancelResult>(&raw)?.turn_id {
        Some(_) if !is_text => Ok(()),
        Some(turn) => app.stdout.status_line(&format!("cancelled turn {turn}; the partial reply was kept")),
        None => {
            let what =
                if params.turn_id.is_some() { "no such turn is running or waiting" } else { "no turn is running" };
            Err(Error::new(exit::NOTHING_TO_DO, what).with_hint("see which agents are running: chorusctl status"))
        }
    }
}
