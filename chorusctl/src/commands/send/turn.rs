//! Runs one turn: sends the message, prints the events, returns the outcome.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};

use chorus_proto::methods::send::{Progress, Send, SendParams, SendResult, TurnEvent};
use chorus_proto::{CallError, ErrorKind};
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::approval_prompts::ApprovalPrompts;
use super::interrupt::{CancelOutcome, InterruptHandler};
use super::turn_printer::TurnPrinter;
use crate::app::{App, StreamingError, parse_result};
use crate::error::Error;
use crate::reconnect::{RETRY_LIMIT, Reconnection, is_lost};
use crate::ui::Stdout;
use crate::ui::stdout::OutputFormat;

/// Hint for a daemon that went away during a turn.
pub const DAEMON_GONE_HINT: &str = "acknowledged messages are saved; see: chorusctl show, chorusctl daemon logs";

/// Command that shows a message of the live conversation by its number.
pub const SHOW_COMMAND: &str = "chorusctl show --at";

/// How a turn is displayed.
#[derive(Debug, Clone, Copy)]
pub struct DisplayOptions {
    /// Print the reply while it arrives.
    pub stream: bool,
    pub thinking: bool,
    /// Hint for a daemon that went away during the turn.
    pub daemon_gone_hint: &'static str,
    /// Command that shows the whole output of a tool: the number of its message follows.
    pub show_command: &'static str,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOutcome {
    Answered,
    /// Cancelled by Ctrl-C.
    Cancelled(CancelOutcome),
}

/// Builds a streamed request with an idempotency key of its own: sent twice, it is answered once.
#[must_use]
pub fn keyed_params(app: &App, text: String) -> SendParams {
    SendParams {
        agent: app.agent(),
        conversation: app.conversation(),
        text,
        key: Some(Uuid::new_v4().to_string()),
        stream: true,
        ..SendParams::default()
    }
}

/// Runs one turn and prints it.
pub fn run(
    app: &mut App,
    interrupts: &InterruptHandler,
    params: &SendParams,
    how: DisplayOptions,
) -> Result<TurnOutcome, Error> {
    let format = app.stdout.format();
    let text = format == OutputFormat::Text;
    let mut speech = TurnPrinter::new(&app.stdout, app.stderr, how.stream && text, how.thinking)
        .with_show_command(how.show_command)
        .with_spinner();
    let mut asking = ApprovalPrompts::new(app.stderr, app.address()?);
    let mut show = |out: &mut Stdout, speech: &mut TurnPrinter, said: &TurnEvent| {
        if format == OutputFormat::Jsonl && how.stream {
            out.json_line(&event_json(said)?)?;
            out.flush()?;
        }
        speech.print_event(out, said)
    };
    let params = &with_key(app, params);
    let mut reconnection = Reconnection::new(Some(RETRY_LIMIT));
    interrupts.turn_requested();
    let answer = loop {
        let answer = app.call_streaming::<Send>(params, &mut |out, said| {
            // Ignore event types of newer daemons.
            let Ok(Progress { said, .. }) = serde_json::from_str(said.get()) else { return Ok(()) };
            match said {
                TurnEvent::Started { turn_id } => interrupts.turn_started(turn_id),
                TurnEvent::Queued { turn_id: Some(turn_id), .. } => interrupts.turn_queued(turn_id),
                _ => {}
            }
            asking.handle_event(out, &mut speech, said, &mut show)
        });
        match answer {
            // By its key, the daemon knows the request, and has the rest of its answer.
            Err(StreamingError::Call(error)) if app.is_remote() && is_lost(&error) => {
                speech.note_lost_line(&mut app.stdout)?;
                if let Err(failure) = reconnection.connect(app, error) {
                    break Err(StreamingError::Output(failure.with_hint(how.daemon_gone_hint)));
                }
            }
            answer => break answer,
        }
    };
    let wanted = interrupts.turn_ended();
    if !matches!(answer, Err(StreamingError::Output(_))) {
        asking.finish(&mut app.stdout, &mut speech, &mut show)?;
    }
    match answer {
        Ok(raw) if text => {
            let result: SendResult = parse_result(&raw)?;
            speech.finish(&mut app.stdout, &result.reply, &result.usage)?;
        }
        Ok(raw) => {
            speech.end_open_lines(&mut app.stdout)?;
            app.stdout.json_line(&raw)?;
            app.stdout.flush()?;
        }
        Err(StreamingError::Output(failure)) => return Err(failure),
        Err(StreamingError::Call(error)) => {
            speech.end_open_lines(&mut app.stdout)?;
            return match wanted.filter(|_| is_interrupted(&error)) {
                Some(CancelOutcome::Cancelled) if !speech.has_output() => {
                    Ok(TurnOutcome::Cancelled(CancelOutcome::CancelledEmpty))
                }
                Some(wanted) => Ok(TurnOutcome::Cancelled(wanted)),
                None => Err(turn_error(error, how.daemon_gone_hint)),
            };
        }
    }
    Ok(TurnOutcome::Answered)
}

/// Gives a request to another machine an idempotency key, so that it can be sent again if the line is lost.
fn with_key(app: &App, params: &SendParams) -> SendParams {
    let key = params.key.clone().or_else(|| app.is_remote().then(|| Uuid::new_v4().to_string()));
    SendParams { key, ..params.clone() }
}

fn event_json(said: &TurnEvent) -> Result<Box<RawValue>, Error> {
    to_raw_value(said).map_err(|error| CallError::from(error).into())
}

fn is_interrupted(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::Interrupted)
}

fn turn_error(error: CallError, gone: &'static str) -> Error {
    let kind = match &error {
        CallError::Io(error) => error.kind(),
        CallError::Rpc(_) | CallError::Malformed(_) => return error.into(),
    };
    let failure = Error::from(error);
    match kind {
        UnexpectedEof | BrokenPipe | ConnectionReset => failure.with_hint(gone),
        WouldBlock | TimedOut => failure.with_hint("the turn continues; see the reply later: chorusctl show"),
        _ => failure,
    }
}
