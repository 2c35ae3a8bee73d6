//! Answering a question: taken by one, noted, told.

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::{ErrorKind, EventType};
use uuid::Uuid;

use super::book::{Open, Told};
use super::question::Answer;
use super::{Approvals, Unanswered, reason};
use crate::failure::{Failure, Result};
use crate::store::catalog::{Audit, Decided};
use crate::who::Requester;

/// An open question in the hands of one who answers it.
#[derive(Debug)]
pub struct Claim<'a> {
    approvals: &'a Approvals,
    open: Open,
    by: Requester,
    /// It is decided; else it is open again when this is dropped.
    settled: bool,
}

/// What an approval for ever makes of the agent's permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub old: String,
    pub new: String,
}

/// An answer that is on the disk. The waiting call hears it when this is dropped.
#[derive(Debug)]
pub struct Noted<'a> {
    approvals: &'a Approvals,
    pub approval: Approval,
    told: Option<Told>,
}

impl<'a> Claim<'a> {
    pub(super) fn new(approvals: &'a Approvals, open: Open, by: Requester) -> Self {
        Self { approvals, open, by, settled: false }
    }

    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.open.approval
    }

    #[must_use]
    pub fn agent(&self) -> Uuid {
        self.open.agent
    }

    /// Approves it, once; with a change of the agent's permissions for ever.
    ///
    /// # Errors
    /// An answer that cannot be noted: it is denied then.
    pub async fn approve(self, change: Option<Change>) -> Result<Noted<'a>> {
        let word = if change.is_some() { "approved_always" } else { "approved" };
        let answer = Answer::Approved { by: self.by.clone(), always: change.is_some() };
        self.settle(Status::Approved, answer, word, change).await
    }

    /// Denies it; `why` is the model's to read.
    ///
    /// # Errors
    /// An answer that cannot be noted; it is denied all the same.
    pub async fn deny(self, why: &str) -> Result<Noted<'a>> {
        let answer = Answer::Denied { by: Some(self.by.clone()), why: why.to_owned() };
        self.settle(Status::Denied, answer, "refused", None).await
    }

    /// Nobody answered.
    pub(super) async fn unanswered(self, why: Unanswered) -> Told {
        let (status, word, why) = match why {
            Unanswered::Time => (Status::Expired, "expired", "nobody answered in time"),
            Unanswered::Turn => (Status::Denied, "withdrawn", "the turn ended before anybody answered"),
            Unanswered::Edit => (
                Status::Denied,
                "withdrawn",
                "the agent's permissions were changed before anybody answered; try it again",
            ),
        };
        let answer = Answer::Denied { by: None, why: why.to_owned() };
        let told = Told { answer: answer.clone(), status, by: None, hash: String::new() };
        match self.settle(status, answer, word, None).await {
            Ok(_noted) => {}
            Err(failure) => tracing::warn!(%failure, "that a question is closed cannot be noted"),
        }
        told
    }

    async fn settle(mut self, status: Status, answer: Answer, word: &str, change: Option<Change>) -> Result<Noted<'a>> {
        let approvals = self.approvals;
        let nobody = matches!(answer, Answer::Denied { by: None, .. });
        let by = (!nobody).then(|| self.by.to_string());
        let at = approvals.clock.now();
        let asked = &self.open.approval;
        let (old, new) = change.map(|change| (change.old, change.new)).unzip();
        let row = Audit {
            at,
            agent: self.open.agent,
            agent_name: asked.agent.clone(),
            turn: Some(asked.turn_id),
            action: asked.action.clone(),
            decision: word.into(),
            rule: reason(&asked.rule),
            user: self.by.to_string(),
            old,
            new,
        };
        let decided = Decided { id: asked.id.clone(), status, at, by: by.clone() };
        let noted = approvals.store.catalog.decide_approval(decided, row).await;
        self.settled = true;
        let failure = match noted {
            Ok(true) => {
                let approval =
                    Approval { status, decided_at: Some(at), decided_by: by.clone(), ..self.open.approval.clone() };
                approvals.tell(EventType::ApprovalDecided, &approval);
                let told = Told { answer, status, by, hash: approval.hash.clone() };
                return Ok(Noted { approvals, approval, told: Some(told) });
            }
            Ok(false) => Failure::new(ErrorKind::Conflict, "it was decided meanwhile")
                .hint("`chorusctl audit` says how, and by whom"),
            Err(failure) => failure,
        };
        let why = format!("the answer cannot be written down ({failure})");
        let told =
            Told { answer: Answer::Denied { by: None, why }, status: Status::Denied, by: None, hash: String::new() };
        approvals.book.settle(&self.open.approval.id, told);
        Err(failure)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.approvals.book.release(&self.open.approval.id);
        }
    }
}

impl Noted<'_> {
    /// Has the waiting call hear it now.
    #[must_use]
    pub fn tell(self) -> Approval {
        self.approval.clone()
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            self.approvals.book.settle(&self.approval.id, told);
        }
    }
}
