//! A conversation with a person at a terminal.

use chorus_proto::methods::send::SendParams;
use jiff::Timestamp;

use super::editor::{Editor, Typed};
use super::opening::{self, Opened};
use super::slash;
use crate::app::App;
use crate::commands::send::cancel::Interrupts;
use crate::commands::send::turn::{self, Ended, How};
use crate::error::Failure;

const GONE: &str =
    "the next message connects again; the same one waits for its reply, or gives it, and is not sent twice";

/// Talks until the person leaves.
///
/// # Errors
/// A terminal that is gone. What a turn or a command fails with is told, and the conversation goes on.
pub fn run(app: &mut App, interrupts: &Interrupts, opened: Opened, thinking: bool) -> Result<(), Failure> {
    let mut editor = Editor::new(&opened.agent, app.places()?.clone(), app.notes)?;
    let mut talk = Talk { since: opened.since, how: How { stream: true, thinking, gone: GONE }, unanswered: None };
    loop {
        let done = match interrupts.prompting(|| editor.next())? {
            Typed::Ended => return Ok(()),
            Typed::Cleared => Ok(()),
            Typed::Text(text) if text.trim().is_empty() => Ok(()),
            Typed::Text(text) => match slash::read(&text) {
                None => talk.turn(app, interrupts, text),
                Some(Ok(slash::Command::Exit)) => return Ok(()),
                Some(Ok(command)) => talk.command(app, command),
                Some(Err(failure)) => Err(failure),
            },
        };
        let done = done.and(app.out.flush());
        if let Err(failure) = done {
            if failure.is_of_stdout() {
                return Err(failure);
            }
            failure.tell(app.notes);
        }
    }
}

struct Talk {
    /// When the context that was gone on with began.
    since: Option<Timestamp>,
    how: How,
    /// The message whose connection broke before its reply came: whether it arrived nobody knows.
    unanswered: Option<SendParams>,
}

impl Talk {
    fn turn(&mut self, app: &mut App, interrupts: &Interrupts, text: String) -> Result<(), Failure> {
        self.look(app)?;
        let before = self.unanswered.take().filter(|before| before.text == text);
        let params = before.unwrap_or_else(|| turn::keyed(app.agent(), text));
        let ended = turn::run(app, interrupts, &params, self.how);
        if let Ok(Ended::Cancelled(wanted)) = ended {
            app.notes.line(wanted.as_str());
        }
        self.unanswered = (!app.is_connected()).then_some(params);
        self.keep_up(app);
        ended?;
        app.out.text("\n")
    }

    fn command(&mut self, app: &mut App, command: slash::Command) -> Result<(), Failure> {
        let elsewhere = command.leads_elsewhere();
        let done = slash::run(app, command);
        if done.is_err() {
            // It may have been the connection that failed.
            app.disconnect();
        } else if elsewhere {
            // The same words are another message there.
            self.unanswered = None;
        }
        self.keep_up(app);
        done
    }

    /// Connects where that is due, and says where the conversation is no longer the one that was gone on with: put away for
    /// its idleness, cleared or replaced by another client.
    fn look(&self, app: &mut App) -> Result<(), Failure> {
        let since = match opening::now(app) {
            Ok(since) => since,
            Err(_) => {
                app.disconnect();
                opening::now(app)?
            }
        };
        if self.since.is_some() && since != self.since {
            app.notes.warning(match since {
                None => "the conversation was put away meanwhile: this message begins another",
                Some(_) => "the conversation was put away meanwhile: this message goes on with the one in its place",
            });
            app.notes.hint("/history shows where it is, /restore goes on with it");
        }
        Ok(())
    }

    /// What a turn or a command made of the context is no surprise.
    fn keep_up(&mut self, app: &mut App) {
        // Without a daemon nothing is known to have changed.
        if let Some(since) = app.is_connected().then(|| opening::now(app)).and_then(Result::ok) {
            self.since = since;
        }
    }
}
