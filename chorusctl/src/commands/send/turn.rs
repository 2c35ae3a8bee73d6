//! One turn: asked for, listened to, shown.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};

use chorus_proto::methods::send::{Progress, Said, Send, SendParams, SendResult};
use chorus_proto::{CallError, ErrorKind};
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::asking::Asking;
use super::cancel::{Interrupts, Wanted};
use super::speech::Speech;
use crate::app::{App, Unanswered, read};
use crate::error::Failure;
use crate::ui::Out;
use crate::ui::out::Format;

/// What to do about a daemon that went away.
pub const LOOK_AGAIN: &str =
    "what it had acknowledged is kept: chorusctl context show; chorusctl daemon logs may say why";

/// How a turn is shown.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// As it comes.
    pub stream: bool,
    pub thinking: bool,
    /// What to do about a daemon that went away meanwhile.
    pub gone: &'static str,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Answered,
    /// By Ctrl-C.
    Cancelled(Wanted),
}

/// A message of a conversation, streamed, under a key of its own: sent twice, it is one.
#[must_use]
pub fn keyed(agent: Option<String>, text: String) -> SendParams {
    SendParams { agent, text, key: Some(Uuid::new_v4().to_string()), stream: true, ..SendParams::default() }
}

/// Has one turn, and shows it.
///
/// # Errors
/// Why there is no reply, or standard output does not take it.
pub fn run(app: &mut App, interrupts: &Interrupts, params: &SendParams, how: How) -> Result<Ended, Failure> {
    let format = app.out.format();
    let text = format == Format::Text;
    let mut speech = Speech::new(&app.out, app.notes, how.stream && text, how.thinking);
    let mut asking = Asking::new(app.notes, app.places()?.clone());
    let mut show = |out: &mut Out, speech: &mut Speech, said: &Said| {
        if format == Format::Jsonl && how.stream {
            out.json_line(&piece(said)?)?;
            out.flush()?;
        }
        speech.hear(out, said)
    };
    interrupts.asked();
    let answer = app.call_streaming::<Send>(params, &mut |out, said| {
        // What a newer daemon may say beside is passed over.
        let Ok(Progress { said, .. }) = serde_json::from_str(said.get()) else { return Ok(()) };
        match said {
            Said::Started { turn_id } => interrupts.started(turn_id),
            Said::Queued { turn_id: Some(turn_id), .. } => interrupts.waits(turn_id),
            _ => {}
        }
        asking.hear(out, &mut speech, said, &mut show)
    });
    let wanted = interrupts.ended();
    if !matches!(answer, Err(Unanswered::Unshown(_))) {
        asking.end(&mut app.out, &mut speech, &mut show)?;
    }
    match answer {
        Ok(raw) if text => {
            let result: SendResult = read(&raw)?;
            speech.end(&mut app.out, &result.reply)?;
        }
        Ok(raw) => {
            speech.break_off(&mut app.out)?;
            app.out.json_line(&raw)?;
            app.out.flush()?;
        }
        Err(Unanswered::Unshown(failure)) => return Err(failure),
        Err(Unanswered::Call(error)) => {
            speech.break_off(&mut app.out)?;
            return match wanted.filter(|_| is_interrupted(&error)) {
                Some(wanted) => Ok(Ended::Cancelled(wanted)),
                None => Err(failed(error, how.gone)),
            };
        }
    }
    Ok(Ended::Answered)
}

fn piece(said: &Said) -> Result<Box<RawValue>, Failure> {
    to_raw_value(said).map_err(|error| CallError::from(error).into())
}

fn is_interrupted(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::Interrupted)
}

fn failed(error: CallError, gone: &'static str) -> Failure {
    let kind = match &error {
        CallError::Io(error) => error.kind(),
        CallError::Rpc(_) | CallError::Malformed(_) => return error.into(),
    };
    let failure = Failure::from(error);
    match kind {
        UnexpectedEof | BrokenPipe | ConnectionReset => failure.hint(gone),
        WouldBlock | TimedOut => failure.hint("the turn goes on: chorusctl context show has the reply later"),
        _ => failure,
    }
}
