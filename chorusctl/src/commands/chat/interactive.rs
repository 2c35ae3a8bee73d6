//! Interactive chat at a terminal.

use chorus_proto::methods::send::SendParams;
use jiff::Timestamp;

use super::editor::{Editor, Input};
use super::slash;
use super::start::{self, ConversationStart};
use crate::app::App;
use crate::commands::send::interrupt::InterruptHandler;
use crate::commands::send::turn::{self, DisplayOptions, TurnOutcome};
use crate::error::Error;

const RECONNECT_HINT: &str = "send the message again to reconnect and get its reply; it is not sent twice";

/// Runs the chat until the user leaves. Errors of turns and commands are printed, and the chat continues.
pub(super) fn run(
    app: &mut App,
    interrupts: &InterruptHandler,
    opened: ConversationStart,
    thinking: bool,
) -> Result<(), Error> {
    let mut editor = Editor::new(&opened.agent, app.paths()?.clone(), app.stderr)?;
    let mut talk = Conversation {
        started_at: opened.started_at,
        options: DisplayOptions { stream: true, thinking, daemon_gone_hint: RECONNECT_HINT },
        unanswered_message: None,
    };
    loop {
        let done = match interrupts.while_prompting(|| editor.read_message())? {
            Input::Eof => return Ok(()),
            Input::Interrupted => Ok(()),
            Input::Text(text) if text.trim().is_empty() => Ok(()),
            Input::Text(text) => match slash::parse(&text) {
                None => talk.run_turn(app, interrupts, text),
                Some(Ok(slash::Command::Exit)) => return Ok(()),
                Some(Ok(command)) => talk.run_command(app, command),
                Some(Err(failure)) => Err(failure),
            },
        };
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
    /// When the context that is being continued began.
    started_at: Option<Timestamp>,
    options: DisplayOptions,
    /// The last message, if the connection broke before its reply came. It is unknown whether the daemon received it.
    unanswered_message: Option<SendParams>,
}

impl Conversation {
    fn run_turn(&mut self, app: &mut App, interrupts: &InterruptHandler, text: String) -> Result<(), Error> {
        self.check_context(app)?;
        let before = self.unanswered_message.take().filter(|before| before.text == text);
        let params = before.unwrap_or_else(|| turn::keyed_params(app.agent(), text));
        let ended = turn::run(app, interrupts, &params, self.options);
        if let Ok(TurnOutcome::Cancelled(wanted)) = ended {
            app.stderr.line(wanted.as_str());
        }
        self.unanswered_message = (!app.is_connected()).then_some(params);
        self.refresh_started_at(app);
        ended?;
        app.stdout.text("\n")
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
        self.refresh_started_at(app);
        done
    }

    /// Reconnects if necessary. Warns if the live context is no longer the one that was being continued, because it
    /// expired or another client cleared or replaced it.
    fn check_context(&self, app: &mut App) -> Result<(), Error> {
        let since = match start::fetch_started_at(app) {
            Ok(since) => since,
            Err(_) => {
                app.disconnect();
                start::fetch_started_at(app)?
            }
        };
        if self.started_at.is_some() && since != self.started_at {
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
    fn refresh_started_at(&mut self, app: &mut App) {
        // Without a connection the state is unknown: keep the old value.
        if let Some(since) = app.is_connected().then(|| start::fetch_started_at(app)).and_then(Result::ok) {
            self.started_at = since;
        }
    }
}
