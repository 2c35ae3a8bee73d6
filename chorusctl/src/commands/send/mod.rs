//! `chorusctl send`: sends a message and prints the reply.

use std::path::PathBuf;

use chorus_proto::methods::send::{CancelParams, SendParams};

use crate::app::App;
use crate::commands::text_input;
use crate::error::Error;

mod approval_prompts;
mod attachments;
mod cancellable_prompt;
pub mod interrupt;
pub mod turn;
pub mod turn_printer;

use interrupt::InterruptHandler;
use turn::{DisplayOptions, TurnOutcome};

/// Send a message to an agent's model, and print the reply as it comes
///
/// The message is TEXT, or what standard input holds, without the line end that is its last character. The model answers, and
/// calls tools until it has nothing more to ask. Its text goes to standard output, everything else to standard error; with --json the
/// result alone is printed, with --format jsonl one line a piece and the result last.
///
/// What the agent's profile asks about is asked at the terminal: y is once, a is always exactly this, anything else no. Without a
/// terminal it waits for `chorusctl approvals approve ID`, and says so.
///
/// Ctrl-C cancels the turn: what came is kept. While it waits for others its message is taken back. A second one leaves at once. A turn does not need chorusctl: where it
/// ends otherwise the turn goes on, `chorusctl cancel` ends it, and `chorusctl context show` has the reply.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The message; `-` or nothing reads standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: Option<String>,
    /// Send a file along, an image for example; may be given several times
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Name this message: the same key again does nothing and gives the first reply
    #[arg(long)]
    key: Option<String>,
    /// Print the reply when it is whole
    #[arg(long)]
    no_stream: bool,
    /// Show what the model thinks, too, on standard error
    #[arg(long)]
    thinking: bool,
    /// Send nothing: end the turn that runs, as `chorusctl cancel` does
    #[arg(long, conflicts_with_all = ["text", "attach", "key", "no_stream", "thinking"])]
    cancel: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.cancel {
        return super::cancel::cancel_turn(CancelParams { agent: app.agent(), turn_id: None }, app);
    }
    let text = match text_input::text_argument(args.text, "send", "send")? {
        Some(text) => text,
        None => text_input::strip_last_newline(text_input::read_stdin()?),
    };
    if text.trim().is_empty() {
        return Err(Error::usage("the message is empty").with_hint("chorusctl send TEXT, or pipe it in"));
    }
    let attachments = attachments::read_attachments(&args.attach)?;
    // Always request the stream, even if the reply is printed as a whole: only the stream tells the id of the turn,
    // which a cancel needs.
    let params = SendParams { agent: app.agent(), text, key: args.key, attachments, stream: true };
    // Connect first: until something is sent, Ctrl-C keeps its default action.
    app.client()?;
    let interrupts = InterruptHandler::install(app, params.agent.clone())?;
    let how =
        DisplayOptions { stream: !args.no_stream, thinking: args.thinking, daemon_gone_hint: turn::DAEMON_GONE_HINT };
    match turn::run(app, &interrupts, &params, how)? {
        TurnOutcome::Answered => Ok(()),
        TurnOutcome::Cancelled(wanted) => Err(Error::failed(wanted.as_str())),
    }
}
