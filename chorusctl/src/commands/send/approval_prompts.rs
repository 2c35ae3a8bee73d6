//! Approvals that a turn asks for. At a terminal the user is asked; otherwise the commands that answer are printed.
//! While a question is open, other output of the turn is deferred.

use std::collections::VecDeque;

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::send::TurnEvent;
use chorus_remote::DaemonAddress;

use super::cancellable_prompt::{self, Prompt};
use super::turn_printer::TurnPrinter;
use crate::commands::approvals::format;
use crate::error::Error;
use crate::ui::{Stderr, Stdout, Style, sanitize, terminal};

/// The approval questions of one turn.
#[derive(Debug)]
pub struct ApprovalPrompts {
    stderr: Stderr,
    daemon: DaemonAddress,
    current: Option<Prompt>,
    pending: VecDeque<Approval>,
    deferred: Vec<TurnEvent>,
}

impl ApprovalPrompts {
    /// Creates it for one turn. Answers go to `daemon`.
    #[must_use]
    pub fn new(stderr: Stderr, daemon: DaemonAddress) -> Self {
        Self { stderr, daemon, current: None, pending: VecDeque::new(), deferred: Vec::new() }
    }

    fn is_known(&self, id: &str) -> bool {
        self.current.as_ref().is_some_and(|prompt| prompt.id == id) || self.pending.iter().any(|asked| asked.id == id)
    }

    /// Handles one event of the turn. Passes it to `show`, or defers it while a question is open.
    pub fn handle_event(
        &mut self,
        out: &mut Stdout,
        speech: &mut TurnPrinter,
        said: TurnEvent,
        show: &mut dyn FnMut(&mut Stdout, &mut TurnPrinter, &TurnEvent) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &said {
            // It comes again after a lost line.
            TurnEvent::Ask { approval } if self.is_known(&approval.id) => Ok(()),
            TurnEvent::Ask { approval } => {
                self.pending.push_back((**approval).clone());
                if self.current.is_some() {
                    self.deferred.push(said);
                    return Ok(());
                }
                show(out, speech, &said)?;
                self.prompt_next(out, speech)
            }
            TurnEvent::Decided { id, status, by } => {
                self.pending.retain(|approval| approval.id != *id);
                if self.current.as_ref().is_some_and(|prompt| prompt.id == *id) {
                    let here = self.current.take().is_some_and(Prompt::withdraw);
                    if !here {
                        // The cursor stands behind the open question: start a new line.
                        self.stderr.line("");
                        self.stderr.styled_line(Style::Faint, &format_decision(*status, by.as_deref(), true));
                    }
                    self.deferred.push(said);
                    self.flush_deferred(out, speech, show)?;
                    return self.prompt_next(out, speech);
                }
                if self.current.is_some() {
                    self.deferred.push(said);
                    return Ok(());
                }
                show(out, speech, &said)?;
                if !cancellable_prompt::is_possible() {
                    speech.interrupt_text(out)?;
                    self.stderr.styled_line(
                        Style::Faint,
                        &format!("{}: {}", sanitize::one_line(id), format_decision(*status, by.as_deref(), false)),
                    );
                }
                Ok(())
            }
            _ if self.current.is_some() => {
                self.deferred.push(said);
                Ok(())
            }
            _ => show(out, speech, &said),
        }
    }

    /// Ends the turn: withdraws the open question and shows the deferred events.
    pub fn finish(
        &mut self,
        out: &mut Stdout,
        speech: &mut TurnPrinter,
        show: &mut dyn FnMut(&mut Stdout, &mut TurnPrinter, &TurnEvent) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.pending.clear();
        if let Some(prompt) = self.current.take()
            && !prompt.withdraw()
        {
            self.stderr.line("");
        }
        self.flush_deferred(out, speech, show)
    }

    fn flush_deferred(
        &mut self,
        out: &mut Stdout,
        speech: &mut TurnPrinter,
        show: &mut dyn FnMut(&mut Stdout, &mut TurnPrinter, &TurnEvent) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.deferred.drain(..).try_for_each(|said| show(out, speech, &said))
    }

    /// Asks the next question.
    fn prompt_next(&mut self, out: &mut Stdout, speech: &mut TurnPrinter) -> Result<(), Error> {
        while self.current.is_none()
            && let Some(approval) = self.pending.pop_front()
        {
            speech.interrupt_text(out)?;
            let columns = terminal::is_stderr_terminal().then(|| terminal::columns(std::io::stderr()));
            // The chat may have started long ago: refresh the clock.
            out.refresh_clock();
            let (head, below) = format::format_approval(&approval, columns, out.clock());
            self.stderr.styled_line(Style::Strong, &head);
            below.iter().for_each(|line| self.stderr.quoted_line(Style::Plain, line));
            let id = approval.id.clone();
            if cancellable_prompt::is_possible() {
                match Prompt::spawn(approval, self.daemon.clone(), self.stderr) {
                    Ok(prompt) => self.current = Some(prompt),
                    Err(error) => self.stderr.warning(&format!("cannot prompt on this terminal: {error}")),
                }
            }
            if self.current.is_none() {
                self.stderr.line("waiting for approval; answer from any terminal with:");
                self.stderr.hint(&format!("chorusctl approvals approve {id}, or chorusctl approvals deny {id}"));
            }
        }
        Ok(())
    }
}

fn format_decision(status: Status, by: Option<&str>, elsewhere: bool) -> String {
    let at = if elsewhere { " elsewhere" } else { "" };
    match (status, by) {
        (Status::Approved, Some(by)) => format!("approved{at} by {}", sanitize::one_line(by)),
        (Status::Denied, Some(by)) => format!("denied{at} by {}", sanitize::one_line(by)),
        (Status::Expired, _) => "expired without an answer: denied".to_owned(),
        _ => "denied: the turn has ended".to_owned(),
    }
}
