//! Approvals: asks people whether an action may run, and waits for their answer.
//!
//! A question is recorded in the catalog before anybody sees it, and an answer before the waiting tool call receives
//! it. What cannot be recorded is denied. Answers are given only through [`Approvals::claim`], which checks who
//! answers; no text of a message counts as an answer.

mod answer;
pub(crate) mod left_open;
mod pending;
mod question;
mod whole_turns;

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::hex;
use chorus_base::requester::{Answerer, Requester};
use chorus_base::sync::RwLock;
use chorus_catalog::ApprovalRow;
use chorus_clock::Clock;
use chorus_journal::NewEvent;
use chorus_proto::methods::approvals::{Approval, Detail, Status};
use chorus_proto::methods::permissions::{Part, Rule};
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{ErrorKind, EventType};
use chorus_redact::Redactor;
use chorus_store::Store;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::pending::{ApprovalOutcome, OpenQuestion, PendingApprovals};
pub use answer::{Claim, PermissionsChange, RecordedAnswer};
pub use question::{ApprovalAnswer, ApprovalScope, Question};
pub use whole_turns::TurnApproval;
use whole_turns::WholeTurns;

/// Maximum number of open questions of one agent. Nobody would read more.
pub const MAX_OPEN_PER_AGENT: usize = 32;

/// The open questions, and how long they wait.
#[derive(Debug)]
pub struct Approvals {
    store: Arc<Store>,
    clock: Clock,
    timeout: RwLock<Duration>,
    pending: PendingApprovals,
    whole_turns: WholeTurns,
    redactor: Arc<Redactor>,
}

/// Why a question ends without an answer.
#[derive(Debug, Clone, Copy)]
enum NoAnswerReason {
    Timeout,
    TurnEnded,
    /// The agent's permissions were changed after the question was asked.
    PermissionsChanged,
}

impl Approvals {
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock, timeout: Duration, redactor: Arc<Redactor>) -> Self {
        Self {
            store,
            clock,
            timeout: RwLock::new(timeout),
            pending: PendingApprovals::default(),
            whole_turns: WholeTurns::default(),
            redactor,
        }
    }

    /// Sets how long further questions stay open.
    pub fn set_timeout(&self, timeout: Duration) {
        *self.timeout.write() = timeout;
    }

    fn timeout(&self) -> Duration {
        *self.timeout.read()
    }

    /// Asks, and waits for the answer, the timeout or the end of the turn. `say` sends events to the turn's listeners.
    ///
    /// # Errors
    /// If the question cannot be recorded, or the agent has too many open. Nobody is asked then.
    pub async fn ask(
        &self,
        question: Question,
        say: &(dyn Fn(TurnEvent) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<ApprovalAnswer> {
        let nonce = Uuid::new_v4();
        let hash = question.binding_hash(nonce);
        let due = self.clock.ticks().after(self.timeout());
        let (approval, told) = self.record_question(&question, nonce, hash).await?;
        // Removes the question, however this future ends.
        let _listed = self.pending.guard(&approval.id);
        self.emit_event(EventType::ApprovalAsked, &approval);
        say(TurnEvent::Ask { approval: Box::new(approval.clone()) });
        let told = self.wait_for_answer(&approval.id, told, due, cancel).await;
        say(TurnEvent::Decided { id: approval.id, status: told.status, by: told.by });
        // The action that runs must be exactly the one that was shown.
        if matches!(told.answer, ApprovalAnswer::Approved { .. }) && told.hash != hex(&question.binding_hash(nonce)) {
            return Err(Error::internal("the approval is for another action"));
        }
        Ok(told.answer)
    }

    /// Returns the open questions, oldest first, of all agents or of one.
    #[must_use]
    pub fn open_approvals(&self, agent: Option<Uuid>) -> Vec<Approval> {
        self.pending.open_approvals(agent)
    }

    /// Returns how many questions of an agent are open.
    #[must_use]
    pub fn count_open(&self, agent: Uuid) -> u64 {
        self.pending.count(agent) as u64
    }

    /// Returns how many questions of all agents are open.
    #[must_use]
    pub fn count_all_open(&self) -> u64 {
        self.pending.total() as u64
    }

    /// Returns the agent of the open question with this id.
    #[must_use]
    pub fn agent_of(&self, id: &str) -> Option<Uuid> {
        self.pending.get(&normalize_id(id)).map(|open| open.agent)
    }

    /// Forgets an agent's open questions, because another daemon has it now. Nothing is recorded; that daemon denies them.
    pub fn forget(&self, agent: Uuid) {
        self.whole_turns.end_all(agent);
        for approval in self.pending.open_approvals(Some(agent)) {
            self.pending.resolve(&approval.id, ApprovalOutcome::lost());
        }
    }

    /// Denies an agent's open questions because its permissions were changed, except those that are just being
    /// answered.
    pub async fn deny_open(&self, agent: Uuid) {
        self.whole_turns.end_all(agent);
        for approval in self.pending.open_approvals(Some(agent)) {
            let asked = self.pending.get(&approval.id).filter(|_| self.pending.claim(&approval.id));
            if let Some(asked) = asked {
                Claim::new(self, asked, Requester::Nobody).deny_unanswered(NoAnswerReason::PermissionsChanged).await;
            }
        }
    }

    /// Approves whatever this turn of an agent still asks about, until it ends.
    pub fn approve_turn(&self, agent: Uuid, approval: TurnApproval) {
        self.whole_turns.insert(agent, approval);
    }

    /// Returns the approval of a whole turn that covers this action, asked on behalf of `requester`.
    #[must_use]
    pub fn turn_approval(&self, agent: Uuid, turn: Uuid, requester: &Requester, action: &str) -> Option<TurnApproval> {
        self.whole_turns.get(agent, turn).filter(|approval| may_answer(&approval.by, requester, action))
    }

    /// Forgets the approval of an agent's turn, which has ended.
    pub fn end_turn(&self, agent: Uuid, turn: Uuid) {
        self.whole_turns.end(agent, turn);
    }

    /// Denies the questions that were open when the previous daemon ended. Even if this fails, nobody can approve them.
    pub async fn deny_left_open(&self) -> Result<()> {
        let has = |agent| self.store.ownership.as_ref().is_none_or(|ownership| ownership.owns(agent));
        left_open::deny_all(&*self.store.catalog.approvals, has, self.clock.now()).await
    }

    /// Claims the open question with this id in order to answer it. Only one claim can exist at a time; if it is
    /// dropped without an answer, the question is open again.
    ///
    /// # Errors
    /// `not_found`, `conflict` if it is decided or claimed, `expired`, `denied` if `by` may not answer it, or the error
    /// of reading the catalog.
    pub async fn claim(&self, id: &str, by: &Answerer, hash: Option<&str>) -> Result<Claim<'_>> {
        let id = normalize_id(id);
        let asked = self.find_for(&id, by).await?;
        if hash.is_some_and(|hash| hash != asked.approval.hash) {
            return Err(Error::new(ErrorKind::Conflict, format!("{id} does not match the action that was shown"))
                .hint("see it: chorusctl approvals"));
        }
        if !self.pending.claim(&id) {
            return Err(Error::new(ErrorKind::Conflict, format!("{id} is being answered by someone else")));
        }
        Ok(Claim::new(self, asked, by.requester.clone()))
    }

    /// Checks that the question with this id is open and that `by` may answer it.
    ///
    /// # Errors
    /// As [`Approvals::claim`].
    pub async fn ensure_answerable(&self, id: &str, by: &Answerer) -> Result<()> {
        self.find_for(&normalize_id(id), by).await.map(drop)
    }

    /// Returns an open question that `by` may answer.
    async fn find_for(&self, id: &str, by: &Answerer) -> Result<OpenQuestion> {
        let Some(asked) = self.pending.get(id) else { return Err(self.not_open_error(id.to_owned()).await?) };
        if !may_answer(by, &asked.requester, &asked.approval.action) {
            let (why, hint) = match reaches_beyond_turn(&asked.approval.action) {
                true => ("only an approver can answer this", "ask an approver, or the owner at a terminal"),
                false => (
                    "this approval is for someone else",
                    "it can be answered by the sender of the message, an approver, or the owner at a terminal",
                ),
            };
            return Err(Error::new(ErrorKind::Denied, why).hint(hint));
        }
        Ok(asked)
    }

    /// Returns the error that tells why a question is not open.
    async fn not_open_error(&self, id: String) -> Result<Error> {
        let Some(was) = self.store.catalog.approvals.get(id.clone()).await? else {
            let shown: String = id.chars().take(40).collect();
            return Ok(Error::new(ErrorKind::NotFound, format!("no pending approval {shown:?}"))
                .hint("list pending approvals: chorusctl approvals"));
        };
        let by = was.decided_by.as_ref().map(|by| format!(" (by {by})")).unwrap_or_default();
        let failure = match was.status {
            Status::Approved => Error::new(ErrorKind::Conflict, format!("{id} was already approved{by}")),
            Status::Expired => Error::new(ErrorKind::Expired, format!("{id} expired without an answer and was denied"))
                .hint("send a message to try again; `approval_timeout` sets how long approvals stay pending"),
            Status::Denied if was.decided_by.is_some() => {
                Error::new(ErrorKind::Conflict, format!("{id} was already denied{by}"))
            }
            Status::Denied | Status::Open => {
                Error::new(ErrorKind::Conflict, format!("{id} was denied: its turn ended, or the daemon restarted"))
                    .hint("send a message to try again")
            }
        };
        Ok(failure)
    }

    /// Records the question, in memory and in the catalog.
    async fn record_question(
        &self,
        question: &Question,
        nonce: Uuid,
        hash: [u8; 32],
    ) -> Result<(Approval, tokio::sync::oneshot::Receiver<ApprovalOutcome>)> {
        let asked_at = self.clock.now();
        loop {
            let approval = Approval {
                id: question::new_short_id(),
                agent: question.agent_name.clone(),
                conversation: question.conversation_name.clone(),
                turn_id: question.turn,
                call_id: question.call_id.clone(),
                action: question.action.clone(),
                details: question.details.clone(),
                hash: hex(&hash),
                rule: question.verdict.rule.clone(),
                parts: question.verdict.parts.clone(),
                requester: question.requester.to_string(),
                asked_at,
                expires_at: asked_at.checked_add(self.timeout()).unwrap_or(asked_at),
                status: Status::Open,
                not_always: question.not_always.clone(),
                patterns: question.patterns.clone(),
                turn_allowed: question.turn_allowed,
                reason: Some(question.reason.clone()),
                directory: Some(question.directory.clone()),
                reach: question.reach.clone(),
                decided_at: None,
                decided_by: None,
            };
            let open = OpenQuestion {
                approval: approval.clone(),
                agent: question.agent,
                definition: question.definition.clone(),
                requester: question.requester.clone(),
            };
            // Inserted before it is recorded, so that it counts towards the limit. Until then it cannot be answered.
            let Some(told) = self.pending.insert(open)? else { continue };
            let listed = self.pending.guard(&approval.id);
            let row = ApprovalRow { approval: self.redacted(&approval), agent: question.agent, hash, nonce };
            if self.store.catalog.approvals.insert(row).await? {
                listed.disarm();
                self.pending.release(&approval.id);
                return Ok((approval, told));
            }
        }
    }

    /// Waits for the answer to a question.
    async fn wait_for_answer(
        &self,
        id: &str,
        mut told: tokio::sync::oneshot::Receiver<ApprovalOutcome>,
        due: chorus_base::Ticks,
        cancel: &CancellationToken,
    ) -> ApprovalOutcome {
        loop {
            let released = self.pending.wait_for_release();
            let mut released = std::pin::pin!(released);
            released.as_mut().enable();
            let why = tokio::select! {
                biased;
                answer = &mut told => return answer.unwrap_or_else(|_| ApprovalOutcome::lost()),
                () = cancel.cancelled() => NoAnswerReason::TurnEnded,
                () = self.clock.sleep_until(due) => NoAnswerReason::Timeout,
            };
            // A sleep may end early.
            if matches!(why, NoAnswerReason::Timeout) && self.clock.ticks() < due {
                continue;
            }
            let asked = self.pending.get(id).filter(|_| self.pending.claim(id));
            if let Some(asked) = asked {
                return Claim::new(self, asked, Requester::Nobody).deny_unanswered(why).await;
            }
            // Somebody is answering it right now.
            tokio::select! {
                biased;
                answer = &mut told => return answer.unwrap_or_else(|_| ApprovalOutcome::lost()),
                () = released => {}
            }
        }
    }

    /// Returns the question with secrets redacted, for the catalog and for observers. Those who answer see it
    /// unredacted.
    fn redacted(&self, approval: &Approval) -> Approval {
        let clean = |text: &str| self.redactor.redact_text(text).into_owned();
        let rule = |rule: &Rule| match rule {
            Rule::Shell { reason } => Rule::Shell { reason: clean(reason) },
            other => other.clone(),
        };
        let detail = |detail: &Detail| Detail { name: clean(&detail.name), text: clean(&detail.text) };
        let part = |part: &Part| Part { action: clean(&part.action), rule: rule(&part.rule), ..part.clone() };
        Approval {
            action: clean(&approval.action),
            details: approval.details.iter().map(detail).collect(),
            rule: rule(&approval.rule),
            parts: approval.parts.iter().map(part).collect(),
            not_always: approval.not_always.as_deref().map(clean),
            reason: approval.reason.as_deref().map(clean),
            ..approval.clone()
        }
    }

    /// Emits an event to observers, without waiting for it.
    fn emit_event(&self, kind: EventType, approval: &Approval) {
        let data = serde_json::to_value(self.redacted(approval)).unwrap_or_default();
        let (agent, conversation) = (Some(approval.agent.clone()), approval.conversation.clone());
        let event = NewEvent { at: self.clock.now(), kind, agent, conversation, data };
        drop(self.store.journal.emit(vec![event]));
    }
}

/// Normalizes an id that a person typed.
pub(crate) fn normalize_id(id: &str) -> String {
    id.trim().to_ascii_lowercase()
}

/// Whether an action has effects beyond its turn: on the agent's own settings, or on another agent.
#[must_use]
pub fn reaches_beyond_turn(action: &str) -> bool {
    ["tool:self_edit:", "tool:send_to_agent:", "tool:schedule_add:"]
        .iter()
        .any(|beginning| action.starts_with(beginning))
}

/// Whether `by` may answer a question about `action` that was asked on behalf of `requester`.
fn may_answer(by: &Answerer, requester: &Requester, action: &str) -> bool {
    match (&by.requester, requester) {
        (Requester::Owner, _) => true,
        (Requester::Person { .. }, _) if by.is_approver => true,
        (Requester::Person { id: by, .. }, Requester::Person { id, .. }) => by == id && !reaches_beyond_turn(action),
        _ => false,
    }
}

/// Formats the rule because of which a question is asked.
#[must_use]
pub fn rule_reason(rule: &Rule) -> String {
    match rule {
        Rule::Pattern { list, index, pattern } => format!("{}[{index}] {pattern}", list.as_str()),
        Rule::Always { index } => format!("always[{index}]: this exact action was permanently approved"),
        Rule::Agent { number, rule } => format!("rule {number} of the agent: {rule}"),
        Rule::Default => "no rule matches it".into(),
        Rule::Shell { reason } => format!("needs approval because {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_approvers_answer_all_and_a_person_only_what_was_asked_for_them() {
        let person = |id: &str, name: &str| Requester::Person { id: id.into(), name: name.into(), roles: vec![] };
        let may_answer = |by: &Requester, requester: &Requester| {
            let alone = may_answer(&by.clone().into(), requester, "tool:bash:ls");
            for action in ["tool:bash:ls", "tool:self_edit:permissions:open", "tool:send_to_agent:b"] {
                let approver = may_answer(&Answerer { requester: by.clone(), is_approver: true }, requester, action);
                assert_eq!(approver, *by != Requester::Nobody, "no person has no right");
            }
            for action in ["tool:self_edit:system_prompt", "tool:self_edit:model:x", "tool:send_to_agent:b"] {
                assert_eq!(may_answer(&by.clone().into(), requester, action), *by == Requester::Owner, "{action}");
            }
            alone
        };
        let (mara, other) = (person("1", "mara"), person("2", "mara"));
        assert!(may_answer(&Requester::Owner, &Requester::Nobody) && may_answer(&Requester::Owner, &mara));
        assert!(may_answer(&person("1", "renamed"), &mara) && !may_answer(&other, &mara));
        assert!(!may_answer(&mara, &Requester::Owner) && !may_answer(&mara, &Requester::Nobody));
        assert!(!may_answer(&Requester::Nobody, &Requester::Nobody));
    }
}
