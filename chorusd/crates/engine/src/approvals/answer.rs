//! Answering a question: claim it, record the answer, deliver it.

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{AuditDecision, DecidedApproval};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::{ErrorKind, EventType};
use uuid::Uuid;

use super::pending::{ApprovalOutcome, OpenQuestion};
use super::question::{ApprovalAnswer, ApprovalScope};
use super::{Approvals, NoAnswerReason, rule_reason};

/// A claimed question. Only its holder can answer it.
#[derive(Debug)]
pub struct Claim<'a> {
    approvals: &'a Approvals,
    question: OpenQuestion,
    by: Requester,
    /// Whether it was decided. If not, the question is open again when the claim is dropped.
    decided: bool,
}

/// The change of the agent's rules that a permanent approval makes, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionsChange {
    pub old: String,
    pub new: String,
}

/// An answer that is recorded. It is delivered to the waiting call when this is dropped.
#[derive(Debug)]
pub struct RecordedAnswer<'a> {
    approvals: &'a Approvals,
    pub approval: Approval,
    outcome: Option<ApprovalOutcome>,
}

impl<'a> Claim<'a> {
    pub(super) fn new(approvals: &'a Approvals, question: OpenQuestion, by: Requester) -> Self {
        Self { approvals, question, by, decided: false }
    }

    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.question.approval
    }

    /// Returns the definition of a server's tool, which a permanent approval covers.
    #[must_use]
    pub fn definition(&self) -> Option<&str> {
        self.question.definition.as_deref()
    }

    #[must_use]
    pub fn agent(&self) -> Uuid {
        self.question.agent
    }

    /// Approves the action, if `scope` says so with a change of the agent's rules. If the answer cannot be recorded, the
    /// action is denied.
    pub async fn approve(self, scope: ApprovalScope, change: Option<PermissionsChange>) -> Result<RecordedAnswer<'a>> {
        let answer = ApprovalAnswer::Approved { by: self.by.clone(), scope };
        self.decide(Status::Approved, answer, scope.audit_word(), change).await
    }

    /// Denies the action, with a reason for the model. It is denied even if the answer cannot be recorded.
    pub async fn deny(self, why: &str) -> Result<RecordedAnswer<'a>> {
        let answer = ApprovalAnswer::Denied { by: Some(self.by.clone()), why: why.to_owned() };
        self.decide(Status::Denied, answer, "refused", None).await
    }

    /// Denies the action because nobody answered.
    pub(super) async fn deny_unanswered(self, why: NoAnswerReason) -> ApprovalOutcome {
        let (status, word, why) = match why {
            NoAnswerReason::Timeout => (Status::Expired, "expired", "the approval expired"),
            NoAnswerReason::TurnEnded => (Status::Denied, "withdrawn", "the turn ended before an answer"),
            NoAnswerReason::PermissionsChanged => {
                (Status::Denied, "withdrawn", "the agent's permissions changed before an answer; try again")
            }
        };
        let answer = ApprovalAnswer::Denied { by: None, why: why.to_owned() };
        let told = ApprovalOutcome { answer: answer.clone(), status, by: None, hash: String::new() };
        match self.decide(status, answer, word, None).await {
            Ok(_noted) => {}
            Err(failure) => tracing::warn!(%failure, "cannot record that an approval was closed"),
        }
        told
    }

    /// Records the answer in the catalog and the audit log. If that fails, the waiting call receives a denial at once.
    async fn decide(
        mut self,
        status: Status,
        answer: ApprovalAnswer,
        word: &str,
        change: Option<PermissionsChange>,
    ) -> Result<RecordedAnswer<'a>> {
        let approvals = self.approvals;
        let nobody = matches!(answer, ApprovalAnswer::Denied { by: None, .. });
        let by = (!nobody).then(|| self.by.to_string());
        let at = approvals.clock.now();
        let asked = &self.question.approval;
        let (old, new) = change.map(|change| (change.old, change.new)).unzip();
        let row = AuditDecision {
            at,
            agent: self.question.agent,
            agent_name: asked.agent.clone(),
            turn: Some(asked.turn_id),
            action: asked.action.clone(),
            decision: word.into(),
            rule: rule_reason(&asked.rule),
            user: self.by.to_string(),
            old,
            new,
        };
        let decided = DecidedApproval { id: asked.id.clone(), status, at, by: by.clone() };
        let noted = approvals.store.catalog.approvals.record_outcome(decided, row).await;
        self.decided = true;
        let failure = match noted {
            Ok(true) => {
                let approval =
                    Approval { status, decided_at: Some(at), decided_by: by.clone(), ..self.question.approval.clone() };
                approvals.emit_event(EventType::ApprovalDecided, &approval);
                let told = ApprovalOutcome { answer, status, by, hash: approval.hash.clone() };
                return Ok(RecordedAnswer { approvals, approval, outcome: Some(told) });
            }
            Ok(false) => {
                Error::new(ErrorKind::Conflict, "it was already decided").hint("see the decision: chorusctl audit")
            }
            Err(failure) => failure,
        };
        let why = format!("cannot record the answer in the audit log ({failure})");
        let told = ApprovalOutcome {
            answer: ApprovalAnswer::Denied { by: None, why },
            status: Status::Denied,
            by: None,
            hash: String::new(),
        };
        approvals.pending.resolve(&self.question.approval.id, told);
        Err(failure)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.decided {
            self.approvals.pending.release(&self.question.approval.id);
        }
    }
}

impl RecordedAnswer<'_> {
    /// Delivers the answer to the waiting call now.
    #[must_use]
    pub fn deliver(self) -> Approval {
        self.approval.clone()
    }
}

impl Drop for RecordedAnswer<'_> {
    fn drop(&mut self) {
        if let Some(told) = self.outcome.take() {
            self.approvals.pending.resolve(&self.approval.id, told);
        }
    }
}
