//! What a turn asks on its way: put to whoever sits at the terminal, else told with the command that answers it. While a question is
//! open, what else is said waits.

use std::collections::VecDeque;

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::send::Said;
use chorus_proto::paths::Places;

use super::prompt::{self, Prompt};
use super::speech::Speech;
use crate::commands::approvals::shown;
use crate::error::Failure;
use crate::ui::{Notes, Out, Style, safe, terminal};

/// The questions of one turn.
#[derive(Debug)]
pub struct Asking {
    notes: Notes,
    places: Places,
    now: Option<Prompt>,
    later: VecDeque<Approval>,
    held: Vec<Said>,
}

impl Asking {
    /// Answers go to the daemon of `places`.
    #[must_use]
    pub fn new(notes: Notes, places: Places) -> Self {
        Self { notes, places, now: None, later: VecDeque::new(), held: Vec::new() }
    }

    /// Shows a piece, or keeps it until the question that is open is answered.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn hear(
        &mut self,
        out: &mut Out,
        speech: &mut Speech,
        said: Said,
        show: &mut dyn FnMut(&mut Out, &mut Speech, &Said) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &said {
            Said::Ask { approval } => {
                self.later.push_back((**approval).clone());
                if self.now.is_some() {
                    self.held.push(said);
                    return Ok(());
                }
                show(out, speech, &said)?;
                self.next(out, speech)
            }
            Said::Decided { id, status, by } => {
                self.later.retain(|approval| approval.id != *id);
                if self.now.as_ref().is_some_and(|prompt| prompt.id == *id) {
                    let here = self.now.take().is_some_and(Prompt::end);
                    if !here {
                        // Behind the question that stands there.
                        self.notes.line("");
                        self.notes.styled(Style::Faint, &word(*status, by.as_deref(), true));
                    }
                    self.held.push(said);
                    self.let_go(out, speech, show)?;
                    return self.next(out, speech);
                }
                if self.now.is_some() {
                    self.held.push(said);
                    return Ok(());
                }
                show(out, speech, &said)?;
                if !prompt::possible() {
                    speech.make_way(out)?;
                    self.notes.styled(
                        Style::Faint,
                        &format!("{}: {}", safe::one_line(id), word(*status, by.as_deref(), false)),
                    );
                }
                Ok(())
            }
            _ if self.now.is_some() => {
                self.held.push(said);
                Ok(())
            }
            _ => show(out, speech, &said),
        }
    }

    /// The turn has ended: nothing is asked any more.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take what waited.
    pub fn end(
        &mut self,
        out: &mut Out,
        speech: &mut Speech,
        show: &mut dyn FnMut(&mut Out, &mut Speech, &Said) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.later.clear();
        if let Some(prompt) = self.now.take()
            && !prompt.end()
        {
            self.notes.line("");
        }
        self.let_go(out, speech, show)
    }

    fn let_go(
        &mut self,
        out: &mut Out,
        speech: &mut Speech,
        show: &mut dyn FnMut(&mut Out, &mut Speech, &Said) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.held.drain(..).try_for_each(|said| show(out, speech, &said))
    }

    /// Puts the next question.
    fn next(&mut self, out: &mut Out, speech: &mut Speech) -> Result<(), Failure> {
        while self.now.is_none()
            && let Some(approval) = self.later.pop_front()
        {
            speech.make_way(out)?;
            let columns = terminal::errors_shown().then(|| terminal::columns(std::io::stderr()));
            // A question may come long after the conversation has begun.
            out.refresh_clock();
            let (head, below) = shown::lines(&approval, columns, out.clock());
            self.notes.styled(Style::Strong, &head);
            below.iter().for_each(|line| self.notes.line(line));
            let id = approval.id.clone();
            if prompt::possible() {
                match Prompt::put(approval, self.places.clone(), self.notes) {
                    Ok(prompt) => self.now = Some(prompt),
                    Err(error) => self.notes.warning(&format!("nobody can be asked here: {error}")),
                }
            }
            if self.now.is_none() {
                self.notes.line("it waits for an answer, from any terminal:");
                self.notes.hint(&format!("chorusctl approvals approve {id}, or chorusctl approvals deny {id}"));
            }
        }
        Ok(())
    }
}

fn word(status: Status, by: Option<&str>, elsewhere: bool) -> String {
    let at = if elsewhere { " elsewhere" } else { "" };
    match (status, by) {
        (Status::Approved, Some(by)) => format!("approved{at}, by {}", safe::one_line(by)),
        (Status::Denied, Some(by)) => format!("denied{at}, by {}", safe::one_line(by)),
        (Status::Expired, _) => "nobody answered in time: it is denied".to_owned(),
        _ => "it is denied: the turn has ended".to_owned(),
    }
}
