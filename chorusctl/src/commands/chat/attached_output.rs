//! Prints what is said in a conversation that a chat is attached to: a running turn before the prompt, or everything if there
//! is no terminal.

use std::io;

use chorus_proto::error::exit;
use chorus_proto::methods::conversations::{Attach, Attached};
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::{CallError, ErrorKind};
use serde_json::value::to_raw_value;

use super::attach::{self, AttachedConversation};
use super::attach_resume::ShownConversation;
use super::attached_lines::{describe_message, describe_reason};
use super::start;
use crate::app::{App, StreamingError};
use crate::commands::conversations;
use crate::commands::send::approval_prompts::ApprovalPrompts;
use crate::commands::send::interrupt::InterruptHandler;
use crate::commands::send::turn::DisplayOptions;
use crate::commands::send::turn_printer::TurnPrinter;
use crate::error::Error;
use crate::reconnect::{Reconnection, is_lost};
use crate::ui::stdout::OutputFormat;
use crate::ui::{Stderr, Stdout, Style};

/// Columns of messages if the output is not a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Follows the conversation of `app` until it is interrupted or the daemon stops. With a JSON format each event is a line.
pub(super) fn follow(app: &mut App, options: DisplayOptions) -> Result<(), Error> {
    let params = attach::params(app);
    let is_text = app.stdout.format() == OutputFormat::Text;
    let mut output = AttachedOutput::new(app, options)?;
    let mut show = |out: &mut Stdout, said: TurnEvent| {
        if is_text {
            return output.print(out, said);
        }
        out.json_line(&to_raw_value(&said).map_err(CallError::from)?)?;
        out.flush()
    };
    let mut shown = match app.is_remote() {
        true => Some(ShownConversation::new(app.address()?, params.clone())),
        false => None,
    };
    let mut reconnection = Reconnection::new(None);
    loop {
        // Why what was missed could not be read.
        let mut missing = None;
        let followed = app.call_streaming::<Attach>(&params, &mut |out, said| {
            // Ignore event types of newer daemons.
            let Ok(Progress { said, .. }) = serde_json::from_str(said.get()) else { return Ok(()) };
            let Some(shown) = &mut shown else { return show(out, said) };
            match shown.accept(said) {
                Ok(new) => new.into_iter().try_for_each(|said| show(out, said)),
                Err(error) => {
                    missing = Some(error);
                    Err(Error::reported(exit::FAILED))
                }
            }
        });
        let lost = match (followed, missing) {
            (_, Some(error)) => error,
            (Err(StreamingError::Call(error)), None) => error,
            (Err(error), None) => return Err(error.into()),
            // The daemon stops.
            (Ok(_), None) => CallError::Io(io::ErrorKind::UnexpectedEof.into()),
        };
        match &shown {
            Some(_) if is_lost(&lost) || is_stopping(&lost) => reconnection.connect(app, lost)?,
            _ => return Err(lost.into()),
        }
    }
}

/// Returns true if the daemon ends, perhaps to be started again.
pub(super) fn is_stopping(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::Stopping)
}

/// Prints who else is there, and the running turn, if any, until it ends. Ctrl-C cancels it.
pub(super) fn show_running_turn(
    app: &mut App,
    interrupts: &InterruptHandler,
    attached: &AttachedConversation,
    options: DisplayOptions,
) -> Result<(), Error> {
    let mut output = AttachedOutput::new(app, options)?;
    let mut event = attached.next_event()?;
    let TurnEvent::Attached { turn_id, .. } = &event else { return Ok(()) };
    let running = *turn_id;
    if let Some(turn) = running {
        interrupts.turn_requested();
        interrupts.turn_started(turn);
    }
    let shown = loop {
        let is_end = matches!(&event, TurnEvent::Ended { turn_id, .. } if Some(*turn_id) == running);
        if let Err(failure) = output.print(&mut app.stdout, event) {
            break Err(failure);
        }
        if running.is_none() || is_end {
            break Ok(());
        }
        event = match attached.next_event() {
            Ok(event) => event,
            Err(failure) => break Err(failure),
        };
    };
    interrupts.turn_ended();
    shown
}

/// Prints events as a chat prints its turns.
struct AttachedOutput {
    stderr: Stderr,
    options: DisplayOptions,
    speech: TurnPrinter,
    asking: ApprovalPrompts,
}

impl AttachedOutput {
    fn new(app: &App, options: DisplayOptions) -> Result<Self, Error> {
        let speech = printer(&app.stdout, app.stderr, options);
        let asking = ApprovalPrompts::new(app.stderr, app.address()?);
        Ok(Self { stderr: app.stderr, options, speech, asking })
    }

    fn print(&mut self, out: &mut Stdout, event: TurnEvent) -> Result<(), Error> {
        match event {
            TurnEvent::Attached { turn_id, others } => {
                self.print_others(out, &others);
                if turn_id.is_some() {
                    self.note(out, "a turn is running; its messages so far:")?;
                }
                Ok(())
            }
            TurnEvent::Message { role, text, author, .. } => {
                self.speech.end_open_lines(out)?;
                let width = out.width().unwrap_or(DEFAULT_WIDTH);
                if let Some((who, text)) = describe_message(role, &text, author.as_deref()) {
                    let lines = start::text_lines(&who, &text, width);
                    lines.iter().for_each(|line| self.stderr.quoted_line(Style::Faint, line));
                }
                Ok(())
            }
            TurnEvent::Ended { reason, .. } => {
                self.asking.finish(out, &mut self.speech, &mut |out, speech, said| speech.print_event(out, said))?;
                self.speech.end_open_lines(out)?;
                self.speech = printer(out, self.stderr, self.options);
                match reason {
                    Some(reason) => self.note(out, &describe_reason(&reason)),
                    None => Ok(()),
                }
            }
            event => {
                let show =
                    &mut |out: &mut Stdout, speech: &mut TurnPrinter, said: &TurnEvent| speech.print_event(out, said);
                self.asking.handle_event(out, &mut self.speech, event, show)
            }
        }
    }

    fn print_others(&self, out: &Stdout, others: &[Attached]) {
        if !others.is_empty() && !out.is_quiet() {
            self.stderr.line(&format!("also {}", conversations::open_in(others)));
        }
    }

    fn note(&self, out: &Stdout, line: &str) -> Result<(), Error> {
        if !out.is_quiet() {
            self.stderr.styled_line(Style::Faint, line);
        }
        Ok(())
    }
}

fn printer(out: &Stdout, stderr: Stderr, options: DisplayOptions) -> TurnPrinter {
    TurnPrinter::new(out, stderr, options.stream, options.thinking).with_show_command(options.show_command)
}
