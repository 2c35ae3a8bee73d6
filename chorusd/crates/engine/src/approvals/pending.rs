//! The open questions, in memory.

use std::collections::HashMap;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, Status};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use super::MAX_OPEN_PER_AGENT;
use super::question::ApprovalAnswer;

/// An open question.
#[derive(Debug, Clone)]
pub(super) struct OpenQuestion {
    pub approval: Approval,
    pub agent: Uuid,
    /// See [`Question::definition`](super::Question::definition).
    pub definition: Option<String>,
    pub requester: Requester,
}

/// The outcome of a question, as the waiting tool call receives it.
#[derive(Debug)]
pub(super) struct ApprovalOutcome {
    pub answer: ApprovalAnswer,
    pub status: Status,
    pub by: Option<String>,
    /// Hash of the approval that was answered.
    pub hash: String,
}

impl ApprovalOutcome {
    /// Returns the outcome for a question whose answer was lost because the answering side is gone.
    pub(super) fn lost() -> Self {
        let answer = ApprovalAnswer::Denied { by: None, why: "the answer was lost".into() };
        Self { answer, status: Status::Denied, by: None, hash: String::new() }
    }
}

#[derive(Debug)]
struct PendingEntry {
    question: OpenQuestion,
    /// It is in the catalog; before that nobody may see it.
    recorded: bool,
    /// Somebody is answering it.
    claimed: bool,
    outcome_sender: oneshot::Sender<ApprovalOutcome>,
}

/// All open questions.
#[derive(Debug, Default)]
pub(super) struct PendingApprovals {
    entries: Mutex<HashMap<String, PendingEntry>>,
    release_notify: Notify,
}

/// Removes a question when it is dropped.
#[derive(Debug)]
pub(super) struct PendingGuard<'a> {
    pending: &'a PendingApprovals,
    id: Option<String>,
}

impl PendingGuard<'_> {
    /// Keeps the question.
    pub(super) fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.pending.entries.lock().remove(&id);
        }
    }
}

impl PendingApprovals {
    /// Inserts a question, claimed so that nobody can answer it yet. Returns `None` if its id is taken.
    ///
    /// # Errors
    /// `busy` if the agent has too many.
    pub(super) fn insert(&self, open: OpenQuestion) -> Result<Option<oneshot::Receiver<ApprovalOutcome>>> {
        let mut entries = self.entries.lock();
        if entries.values().filter(|entry| entry.question.agent == open.agent).count() >= MAX_OPEN_PER_AGENT {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("this agent already has {MAX_OPEN_PER_AGENT} pending approvals"),
            ));
        }
        if entries.contains_key(&open.approval.id) {
            return Ok(None);
        }
        let (tell, told) = oneshot::channel();
        entries.insert(
            open.approval.id.clone(),
            PendingEntry { question: open, recorded: false, claimed: true, outcome_sender: tell },
        );
        Ok(Some(told))
    }

    /// Returns a guard that removes the question.
    pub(super) fn guard(&self, id: &str) -> PendingGuard<'_> {
        PendingGuard { pending: self, id: Some(id.to_owned()) }
    }

    pub(super) fn get(&self, id: &str) -> Option<OpenQuestion> {
        self.entries.lock().get(id).filter(|entry| entry.recorded).map(|entry| entry.question.clone())
    }

    /// Claims a question. Returns false if it is gone or claimed already.
    pub(super) fn claim(&self, id: &str) -> bool {
        self.entries.lock().get_mut(id).is_some_and(|entry| !std::mem::replace(&mut entry.claimed, true))
    }

    /// Marks a question as recorded, and ends its claim.
    pub(super) fn release(&self, id: &str) {
        if let Some(entry) = self.entries.lock().get_mut(id) {
            entry.recorded = true;
            entry.claimed = false;
        }
        self.release_notify.notify_waiters();
    }

    /// Waits until the claim of any question ends.
    pub(super) fn wait_for_release(&self) -> Notified<'_> {
        self.release_notify.notified()
    }

    /// Removes a question and sends the outcome to the waiting call.
    pub(super) fn resolve(&self, id: &str, told: ApprovalOutcome) {
        if let Some(entry) = self.entries.lock().remove(id) {
            // If the call is gone, nobody needs the outcome.
            let _ = entry.outcome_sender.send(told);
        }
    }

    pub(super) fn open_approvals(&self, agent: Option<Uuid>) -> Vec<Approval> {
        let entries = self.entries.lock();
        let wanted =
            entries.values().filter(|entry| entry.recorded && agent.is_none_or(|agent| entry.question.agent == agent));
        let mut open: Vec<Approval> = wanted.map(|entry| entry.question.approval.clone()).collect();
        drop(entries);
        open.sort_by(|one, other| (one.asked_at, &one.id).cmp(&(other.asked_at, &other.id)));
        open
    }

    pub(super) fn total(&self) -> usize {
        self.entries.lock().len()
    }

    pub(super) fn count(&self, agent: Uuid) -> usize {
        self.entries.lock().values().filter(|entry| entry.question.agent == agent).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_agent_core::test_support;

    fn open(id: usize, agent: u128) -> OpenQuestion {
        let approval = test_support::sample_approval(&id.to_string());
        OpenQuestion { approval, agent: Uuid::from_u128(agent), definition: None, requester: Requester::Owner }
    }

    #[test]
    fn more_than_anybody_reads_are_not_asked() {
        let book = PendingApprovals::default();
        let told: Vec<_> = (0..MAX_OPEN_PER_AGENT).map(|id| book.insert(open(id, 1)).unwrap().unwrap()).collect();
        assert_eq!(book.insert(open(MAX_OPEN_PER_AGENT, 1)).unwrap_err().kind, ErrorKind::Busy);
        assert!(book.insert(open(0, 2)).unwrap().is_none(), "that id already exists");
        assert!(book.insert(open(MAX_OPEN_PER_AGENT, 2)).unwrap().is_some(), "another agent's are its own");
        drop(book.guard("0"));
        assert!(book.insert(open(MAX_OPEN_PER_AGENT + 1, 1)).unwrap().is_some());
        drop(told);
    }
}
