//! The open questions, in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, Status};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use super::MOST_OPEN;
use super::question::Answer;
use crate::failure::{Failure, Result};
use crate::who::Requester;

/// A question that is open.
#[derive(Debug, Clone)]
pub struct Open {
    pub approval: Approval,
    pub agent: Uuid,
    pub requester: Requester,
}

/// The answer, as the waiting call hears it.
#[derive(Debug)]
pub struct Told {
    pub answer: Answer,
    pub status: Status,
    pub by: Option<String>,
    /// Of the approval that was answered.
    pub hash: String,
}

impl Told {
    /// Whoever took the question went away with it.
    pub fn lost() -> Self {
        let answer = Answer::Denied { by: None, why: "the answer was lost".into() };
        Self { answer, status: Status::Denied, by: None, hash: String::new() }
    }
}

#[derive(Debug)]
struct Entry {
    open: Open,
    /// It is on the disk; before, nobody hears of it.
    noted: bool,
    /// Somebody is answering it.
    claimed: bool,
    tell: oneshot::Sender<Told>,
}

#[derive(Debug, Default)]
pub struct Book {
    entries: Mutex<HashMap<String, Entry>>,
    released: Notify,
}

/// A question leaves the book when this is dropped.
#[derive(Debug)]
pub struct Listed<'a> {
    book: &'a Book,
    id: Option<String>,
}

impl Listed<'_> {
    /// It does not.
    pub fn stays(mut self) {
        self.id = None;
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.book.entries().remove(&id);
        }
    }
}

impl Book {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question that nobody can answer yet. `None`: its id is taken.
    ///
    /// # Errors
    /// `busy` where the agent has too many.
    pub fn add(&self, open: Open) -> Result<Option<oneshot::Receiver<Told>>> {
        let mut entries = self.entries();
        if entries.values().filter(|entry| entry.open.agent == open.agent).count() >= MOST_OPEN {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MOST_OPEN} other actions of this agent wait for an answer already"),
            ));
        }
        if entries.contains_key(&open.approval.id) {
            return Ok(None);
        }
        let (tell, told) = oneshot::channel();
        entries.insert(open.approval.id.clone(), Entry { open, noted: false, claimed: true, tell });
        Ok(Some(told))
    }

    /// Takes it out of the book when what this gives is dropped.
    pub fn listed(&self, id: &str) -> Listed<'_> {
        Listed { book: self, id: Some(id.to_owned()) }
    }

    pub fn get(&self, id: &str) -> Option<Open> {
        self.entries().get(id).filter(|entry| entry.noted).map(|entry| entry.open.clone())
    }

    /// Whether this call has it now.
    pub fn claim(&self, id: &str) -> bool {
        self.entries().get_mut(id).is_some_and(|entry| !std::mem::replace(&mut entry.claimed, true))
    }

    /// It is on the disk, and anybody can have it, or have it again.
    pub fn release(&self, id: &str) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.noted = true;
            entry.claimed = false;
        }
        self.released.notify_waiters();
    }

    /// Waits until one is released.
    pub fn released(&self) -> Notified<'_> {
        self.released.notified()
    }

    /// Takes it out, and tells the waiting call.
    pub fn settle(&self, id: &str, told: Told) {
        if let Some(entry) = self.entries().remove(id) {
            // A call that is gone needs no answer.
            let _ = entry.tell.send(told);
        }
    }

    pub fn open(&self, agent: Option<Uuid>) -> Vec<Approval> {
        let entries = self.entries();
        let wanted =
            entries.values().filter(|entry| entry.noted && agent.is_none_or(|agent| entry.open.agent == agent));
        let mut open: Vec<Approval> = wanted.map(|entry| entry.open.approval.clone()).collect();
        drop(entries);
        open.sort_by(|one, other| (one.asked_at, &one.id).cmp(&(other.asked_at, &other.id)));
        open
    }

    pub fn total(&self) -> usize {
        self.entries().len()
    }

    pub fn count(&self, agent: Uuid) -> usize {
        self.entries().values().filter(|entry| entry.open.agent == agent).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn open(id: usize, agent: u128) -> Open {
        let approval = sample::approval(&id.to_string());
        Open { approval, agent: Uuid::from_u128(agent), requester: Requester::Owner }
    }

    #[test]
    fn more_than_anybody_reads_are_not_asked() {
        let book = Book::default();
        let told: Vec<_> = (0..MOST_OPEN).map(|id| book.add(open(id, 1)).unwrap().unwrap()).collect();
        assert_eq!(book.add(open(MOST_OPEN, 1)).unwrap_err().kind, ErrorKind::Busy);
        assert!(book.add(open(0, 2)).unwrap().is_none(), "that id is taken");
        assert!(book.add(open(MOST_OPEN, 2)).unwrap().is_some(), "another agent's are its own");
        drop(book.listed("0"));
        assert!(book.add(open(MOST_OPEN + 1, 1)).unwrap().is_some());
        drop(told);
    }
}
