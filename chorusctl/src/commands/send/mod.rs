//! `chorusctl send`: sends a message and prints the reply.

use std::path::PathBuf;

use chorus_proto::methods::send::{CancelParams, SendParams};

use crate::app::App;
use crate::commands::text_input;
use crate::error::Error;

pub mod approval_prompts;
pub mod attachments;
mod cancellable_prompt;
pub mod interrupt;
mod reply_renderer;
pub mod tool_lines;
pub mod turn;
pub mod turn_printer;

use interrupt::InterruptHandler;
use turn::{DisplayOptions, TurnOutcome};

/// Send a message to an agent's model and print the reply
///
/// The message is TEXT or standard input; the final newline of piped input is not sent. The model replies and calls tools until it is
/// done. Its text goes to standard output, everything else to standard error. --json prints only the result; --format jsonl prints one
/// line per event, then the result.
///
/// If the agent's profile requires approval for an action, you are asked at the terminal. Without a terminal, the turn waits for
/// `chorusctl approvals approve ID`.
///
/// Ctrl-C cancels the turn and keeps the partial reply, or withdraws the message if it still waits for another turn. A second Ctrl-C exits
/// at once. The turn runs in the daemon: if chorusctl exits in another way, the turn continues, `chorusctl cancel` cancels it, and
/// `chorusctl show` has the reply.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Message; reads standard input if it is `-` or missing
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: Option<String>,
    /// Use this model for this turn, instead of the agent's
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// Attach a file (repeatable)
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Idempotency key: resending returns the first reply
    #[arg(long)]
    key: Option<String>,
    /// Print the reply once it is complete
    #[arg(long)]
    no_stream: bool,
    /// Also show the model's thinking, on standard error
    #[arg(long)]
    thinking: bool,
    /// Send nothing; cancel the running turn, like `chorusctl cancel`
    #[arg(long, conflicts_with_all = ["text", "model", "attach", "key", "no_stream", "thinking"])]
    cancel: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.cancel {
        let params = CancelParams { conversation: app.conversation(), agent: app.agent(), turn_id: None };
        return super::cancel::cancel_turn(params, app);
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
    let params = SendParams {
        conversation: app.conversation(),
        agent: app.agent(),
        text,
        key: args.key,
        model: args.model,
        attachments,
        stream: true,
    };
    // Connect first: until something is sent, Ctrl-C keeps its default action.
    app.client()?;
    let interrupts = InterruptHandler::install(app)?;
    let how = DisplayOptions {
        stream: !args.no_stream,
        thinking: args.thinking,
        daemon_gone_hint: turn::DAEMON_GONE_HINT,
        show_command: turn::SHOW_COMMAND,
    };
    match turn::run(app, &interrupts, &params, how)? {
        TurnOutcome::Answered => Ok(()),
        TurnOutcome::Cancelled(wanted) => Err(Error::failed(wanted.as_str())),
    }
}
