//! Interactive chat at a terminal.

use std::path::Path;

use chorus_proto::methods::send::SendParams;
use uuid::Uuid;

use super::attach::AttachedConversation;
use super::editor::{Editor, Input};
use super::notices::Notices;
use super::presence::Presence;
use super::start::{self, ConversationStart, Position};
use super::{Args, attached_output, mentions, slash};
use crate::app::App;
use crate::commands::format;
use crate::commands::send::attachments;
use crate::commands::send::interrupt::InterruptHandler;
use crate::commands::send::turn::{self, DisplayOptions, TurnOutcome};
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Columns of notices if the width of the terminal is not known.
const DEFAULT_WIDTH: usize = 80;

/// Width of the meter of the context.
const METER_COLUMNS: usize = 16;

const RECONNECT_HINT: &str = "send the message again to reconnect and get its reply; it is not sent twice";

/// Runs the chat until the user leaves. Errors of turns and commands are printed, and the chat continues.
pub(super) fn run(
    app: &mut App,
    interrupts: &InterruptHandler,
    opened: ConversationStart,
    args: &Args,
) -> Result<(), Error> {
    let name = opened.conversation.as_ref().map(|conversation| &*conversation.name);
    let mut editor = Editor::new(&opened.agent, name, app.address()?, app.stderr)?;
    let width = app.stdout.width().unwrap_or(DEFAULT_WIDTH);
    let (daemon, seen) = (app.address()?, opened.position.messages);
    let line = editor.edited_line();
    let printer = Box::new(move |lines: &[String]| line.print_above(lines));
    let mut notices = Notices::new(daemon, (&opened.agent, opened.conversation), seen, width, printer, !args.attach);
    let options = DisplayOptions {
        stream: true,
        thinking: args.thinking,
        daemon_gone_hint: RECONNECT_HINT,
        show_command: "/show",
    };
    let attached = match args.attach {
        true => Some(AttachedConversation::new(app, &opened.agent, notices.printer())?),
        false => None,
    };
    let mut presence = if args.attach { None } else { Some(Presence::new(app)?) };
    if let Some(attached) = &attached {
        attached_output::show_running_turn(app, interrupts, attached, options)?;
    }
    let mut talk = Conversation { position: opened.position, options, attached, unanswered_message: None };
    talk.release_attached(None);
    loop {
        if let Some(presence) = &mut presence {
            presence.ensure_registered();
        }
        let stderr = app.stderr;
        let read = notices.while_prompting(stderr, || interrupts.while_prompting(|| editor.read_message()));
        let done = match read? {
            Input::Eof => return Ok(()),
            Input::Interrupted => Ok(()),
            Input::Text(text) if text.trim().is_empty() => Ok(()),
            // As in other programs with a prompt. With a space before it, it is a message.
            Input::Text(text) if matches!(text.trim_end(), "exit" | "quit") => return Ok(()),
            Input::Text(text) => match slash::parse(&text) {
                None => talk.run_turn(app, interrupts, text),
                Some(Ok(slash::Command::Exit)) => return Ok(()),
                Some(Ok(command)) => talk.run_command(app, command),
                Some(Err(failure)) => Err(failure),
            },
        };
        notices.mark_seen(talk.position.messages);
        let done = done.and(app.stdout.flush());
        if let Err(failure) = done {
            if failure.is_stdout_closed() {
                return Err(failure);
            }
            failure.print(app.stderr);
        }
    }
}

struct Conversation {
    /// The conversation that is being continued.
    position: Position,
    options: DisplayOptions,
    /// The same conversation as others see it, with --attach.
    attached: Option<AttachedConversation>,
    /// The last message, if the connection broke before its reply came. It is unknown whether the daemon received it.
    unanswered_message: Option<SendParams>,
}

impl Conversation {
    fn run_turn(&mut self, app: &mut App, interrupts: &InterruptHandler, text: String) -> Result<(), Error> {
        self.check_context(app)?;
        let named = mentions::find(&text, Path::is_file);
        for name in &named.missing {
            app.stderr.line(&format!("{} is not a file; sent as text", sanitize::one_line(name)));
        }
        let before = self.unanswered_message.take().filter(|before| before.text == named.text);
        let params = match before {
            Some(before) => before,
            None => SendParams {
                attachments: attachments::read_attachments(&named.files)?,
                ..turn::keyed_params(app, named.text)
            },
        };
        if let Some(attached) = &mut self.attached {
            attached.hold();
        }
        let ended = turn::run(app, interrupts, &params, self.options);
        self.release_attached(interrupts.last_turn());
        if let Ok(TurnOutcome::Cancelled(wanted)) = ended {
            app.stderr.line(wanted.as_str());
        }
        self.unanswered_message = (!app.is_connected()).then_some(params);
        self.refresh_position(app);
        ended?;
        self.print_meter(app);
        app.stdout.text("\n")
    }

    /// Prints how full the context is; above one half also how long the next request is.
    fn print_meter(&self, app: &App) {
        let Some(meter) = self.position.meter.filter(|_| !app.stdout.is_quiet()) else { return };
        let Some(bar) = format::context_meter(&meter, METER_COLUMNS) else { return };
        let is_long = meter.window.is_some_and(|window| meter.used > window / 2);
        let size = if is_long { format!(" · next request {}", format::prompt_size(&meter)) } else { String::new() };
        app.stderr.styled_line(Style::Faint, &format!("context {bar}{size}"));
    }

    /// Shows what others said meanwhile.
    fn release_attached(&mut self, own_turn: Option<Uuid>) {
        if let Some(attached) = &mut self.attached {
            attached.release(own_turn);
        }
    }

    fn run_command(&mut self, app: &mut App, command: slash::Command) -> Result<(), Error> {
        let elsewhere = command.switches_context();
        let done = slash::run(app, command);
        if done.is_err() {
            // The connection itself may have failed.
            app.disconnect();
        } else if elsewhere {
            // In another context the same text is a new message, not a retry.
            self.unanswered_message = None;
        }
        self.refresh_position(app);
        done
    }

    /// Reconnects if necessary. Warns if the live context is no longer the one that was being continued, because it
    /// expired or another client cleared or replaced it.
    fn check_context(&self, app: &mut App) -> Result<(), Error> {
        let since = match start::fetch_position(app) {
            Ok(now) => now.started_at,
            Err(_) => {
                app.disconnect();
                start::fetch_position(app)?.started_at
            }
        };
        if self.position.started_at.is_some() && since != self.position.started_at {
            app.stderr.warning(match since {
                None => "the conversation was saved and cleared after being idle; this message starts a new one",
                Some(_) => "another conversation was loaded; this message continues that one",
            });
            app.stderr.hint("/history lists it, /restore loads it");
        }
        Ok(())
    }

    /// Remembers the context after a turn or command of this chat, so that [`Conversation::check_context`] does not
    /// warn about it.
    fn refresh_position(&mut self, app: &mut App) {
        // Without a connection the state is unknown: keep the old value.
        if let Some(now) = app.is_connected().then(|| start::fetch_position(app)).and_then(Result::ok) {
            self.position = now;
        }
    }
}
