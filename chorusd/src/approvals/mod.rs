//! Questions to people: may this one action be done?
//!
//! A question is noted in the catalog before anybody hears of it, and its answer before the waiting call does. What cannot be noted is
//! denied. Answers come only through [`Approvals::claim`], which looks at who answers; nothing that a message says is one.

mod answer;
mod book;
mod question;
#[cfg(test)]
pub mod sample;

pub use answer::{Change, Claim, Noted};
pub use question::{Answer, Question};

use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::approvals::{Approval, Detail, Status};
use chorus_proto::methods::permissions::{Part, Rule};
use chorus_proto::methods::send::Said;
use chorus_proto::{ErrorKind, EventType};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::book::{Book, Open, Told};
use crate::clock::Clock;
use crate::failure::{Failure, Result};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::catalog::{ApprovalRow, hex};
use crate::store::journal::NewEvent;
use crate::who::{Answerer, Requester};

/// Questions of one agent that may be open at once: more is no longer read by anybody.
pub const MOST_OPEN: usize = 32;

/// The questions that are open.
#[derive(Debug)]
pub struct Approvals {
    store: Arc<Store>,
    clock: Clock,
    timeout: Duration,
    book: Book,
    redactor: Arc<Redactor>,
}

/// Why a question ends that nobody answered.
#[derive(Debug, Clone, Copy)]
enum Unanswered {
    Time,
    Turn,
    /// It was asked under other permissions.
    Edit,
}

impl Approvals {
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock, timeout: Duration, redactor: Arc<Redactor>) -> Self {
        Self { store, clock, timeout, book: Book::default(), redactor }
    }

    /// Asks, and waits for the answer, for the time-out, or for the turn to end. Whoever listens to the turn is told
    /// through `say`.
    ///
    /// # Errors
    /// A question that cannot be noted, or too many that are open: nobody is asked then.
    pub async fn ask(
        &self,
        question: Question,
        say: &(dyn Fn(Said) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answer> {
        let nonce = Uuid::new_v4();
        let hash = question.bound(nonce);
        let due = self.clock.ticks().after(self.timeout);
        let (approval, told) = self.note(&question, nonce, hash).await?;
        // Whatever becomes of this task, the question goes with it.
        let _listed = self.book.listed(&approval.id);
        self.tell(EventType::ApprovalAsked, &approval);
        say(Said::Ask { approval: Box::new(approval.clone()) });
        let told = self.wait(&approval.id, told, due, cancel).await;
        say(Said::Decided { id: approval.id, status: told.status, by: told.by });
        // What runs is what was shown, and nothing else.
        if matches!(told.answer, Answer::Approved { .. }) && told.hash != hex(&question.bound(nonce)) {
            return Err(Failure::internal("the approval is of another action"));
        }
        Ok(told.answer)
    }

    /// Those that are open, in the order they were asked; of one agent where one is named.
    #[must_use]
    pub fn open(&self, agent: Option<Uuid>) -> Vec<Approval> {
        self.book.open(agent)
    }

    /// How many of an agent's are open.
    #[must_use]
    pub fn count(&self, agent: Uuid) -> u64 {
        self.book.count(agent) as u64
    }

    /// How many questions of all agents are open.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.book.total() as u64
    }

    /// The agent that asks the open question of this id.
    #[must_use]
    pub fn asks(&self, id: &str) -> Option<Uuid> {
        self.book.get(&plain(id)).map(|open| open.agent)
    }

    /// Denies what an agent has open, because its permissions were changed. What somebody is answering at this moment is theirs.
    pub async fn close(&self, agent: Uuid) {
        for approval in self.book.open(Some(agent)) {
            let asked = self.book.get(&approval.id).filter(|_| self.book.claim(&approval.id));
            if let Some(asked) = asked {
                Claim::new(self, asked, Requester::Nobody).unanswered(Unanswered::Edit).await;
            }
        }
    }

    /// Denies what a daemon before this one left open.
    ///
    /// # Errors
    /// A database that cannot be read or written; they can be approved all the same by nobody.
    pub async fn close_left_open(&self) -> Result<()> {
        match self.store.catalog.close_approvals(self.clock.now()).await? {
            0 => {}
            count => tracing::info!(count, "what was asked before the start was denied"),
        }
        Ok(())
    }

    /// Takes the open question of that id, to answer it: one at a time can. It stays open where the claim is dropped.
    ///
    /// # Errors
    /// `not_found`, `conflict` where it was decided or is being, `expired`, `denied` for one who may not answer it, or a
    /// database that cannot be read.
    pub async fn claim(&self, id: &str, by: &Answerer, hash: Option<&str>) -> Result<Claim<'_>> {
        let id = plain(id);
        let Some(asked) = self.book.get(&id) else { return Err(self.gone(id).await?) };
        if !may_answer(by, &asked.requester, &asked.approval.action) {
            let (why, hint) = match beyond(&asked.approval.action) {
                true => ("only an approver can answer that", "an approver, or the owner at a terminal, can answer"),
                false => (
                    "somebody else was asked",
                    "whoever sent the message, an approver, or the owner at a terminal, can answer",
                ),
            };
            return Err(Failure::new(ErrorKind::Denied, why).hint(hint));
        }
        if hash.is_some_and(|hash| hash != asked.approval.hash) {
            return Err(Failure::new(
                ErrorKind::Conflict,
                format!("{id} is another action than the one that was shown"),
            )
            .hint("`chorusctl approvals` shows it"));
        }
        if !self.book.claim(&id) {
            return Err(Failure::new(ErrorKind::Conflict, format!("somebody is answering {id} right now")));
        }
        Ok(Claim::new(self, asked, by.who.clone()))
    }

    /// Why a question is not open.
    async fn gone(&self, id: String) -> Result<Failure> {
        let Some(was) = self.store.catalog.approval(id.clone()).await? else {
            let shown: String = id.chars().take(40).collect();
            return Ok(Failure::new(ErrorKind::NotFound, format!("nothing was asked as {shown:?}"))
                .hint("`chorusctl approvals` lists what waits for an answer"));
        };
        let by = was.decided_by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        let failure = match was.status {
            Status::Approved => Failure::new(ErrorKind::Conflict, format!("{id} was approved already{by}")),
            Status::Expired => Failure::new(ErrorKind::Expired, format!("nobody answered {id} in time; it was denied"))
                .hint("send a message to have it tried again; `approval_timeout` is how long it waits"),
            Status::Denied if was.decided_by.is_some() => {
                Failure::new(ErrorKind::Conflict, format!("{id} was denied already{by}"))
            }
            Status::Denied | Status::Open => Failure::new(
                ErrorKind::Conflict,
                format!("{id} was denied: its turn has ended, or the daemon was started anew"),
            )
            .hint("send a message to have it tried again"),
        };
        Ok(failure)
    }

    /// Notes the question, in the book and in the catalog.
    async fn note(
        &self,
        question: &Question,
        nonce: Uuid,
        hash: [u8; 32],
    ) -> Result<(Approval, tokio::sync::oneshot::Receiver<Told>)> {
        let asked_at = self.clock.now();
        loop {
            let approval = Approval {
                id: question::short_id(),
                agent: question.agent_name.clone(),
                turn_id: question.turn,
                call_id: question.call.clone(),
                action: question.action.clone(),
                details: question.details.clone(),
                hash: hex(&hash),
                rule: question.verdict.rule.clone(),
                parts: question.verdict.parts.clone(),
                requester: question.requester.to_string(),
                asked_at,
                expires_at: asked_at.checked_add(self.timeout).unwrap_or(asked_at),
                status: Status::Open,
                not_always: question.not_always.clone(),
                decided_at: None,
                decided_by: None,
            };
            let open =
                Open { approval: approval.clone(), agent: question.agent, requester: question.requester.clone() };
            // Listed before it is noted, so that it counts; nobody can answer before it is.
            let Some(told) = self.book.add(open)? else { continue };
            let listed = self.book.listed(&approval.id);
            let row = ApprovalRow { approval: self.kept(&approval), agent: question.agent, hash, nonce };
            if self.store.catalog.ask_approval(row).await? {
                listed.stays();
                self.book.release(&approval.id);
                return Ok((approval, told));
            }
        }
    }

    async fn wait(
        &self,
        id: &str,
        mut told: tokio::sync::oneshot::Receiver<Told>,
        due: crate::clock::Ticks,
        cancel: &CancellationToken,
    ) -> Told {
        loop {
            let released = self.book.released();
            let mut released = std::pin::pin!(released);
            released.as_mut().enable();
            let why = tokio::select! {
                biased;
                answer = &mut told => return answer.unwrap_or_else(|_| Told::lost()),
                () = cancel.cancelled() => Unanswered::Turn,
                () = self.clock.sleep_until(due) => Unanswered::Time,
            };
            // A sleep may end early.
            if matches!(why, Unanswered::Time) && self.clock.ticks() < due {
                continue;
            }
            let asked = self.book.get(id).filter(|_| self.book.claim(id));
            if let Some(asked) = asked {
                return Claim::new(self, asked, Requester::Nobody).unanswered(why).await;
            }
            // Somebody is answering at this very moment.
            tokio::select! {
                biased;
                answer = &mut told => return answer.unwrap_or_else(|_| Told::lost()),
                () = released => {}
            }
        }
    }

    /// A question as it is written down and told to observers: without secrets. Whoever answers it is shown it as it is.
    fn kept(&self, approval: &Approval) -> Approval {
        let clean = |text: &str| self.redactor.text(text).into_owned();
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
            ..approval.clone()
        }
    }

    /// Tells observers; nobody waits for it.
    fn tell(&self, kind: EventType, approval: &Approval) {
        let data = serde_json::to_value(self.kept(approval)).unwrap_or_default();
        let event = NewEvent { at: self.clock.now(), kind, agent: Some(approval.agent.clone()), data };
        drop(self.store.journal.emit(vec![event]));
    }
}

/// An id as it was typed.
fn plain(id: &str) -> String {
    id.trim().to_ascii_lowercase()
}

/// Whether an action reaches beyond the turn that it is of: what the agent is from then on, or another agent.
#[must_use]
pub fn beyond(action: &str) -> bool {
    ["tool:self_edit:", "tool:send_to_agent:"].iter().any(|beginning| action.starts_with(beginning))
}

/// Whether `by` may answer `action`, which is asked on behalf of `requester`.
fn may_answer(by: &Answerer, requester: &Requester, action: &str) -> bool {
    match (&by.who, requester) {
        (Requester::Owner, _) => true,
        (Requester::Person { .. }, _) if by.approver => true,
        (Requester::Person { id: by, .. }, Requester::Person { id, .. }) => by == id && !beyond(action),
        _ => false,
    }
}

/// Why something is asked about, for a person.
#[must_use]
pub fn reason(rule: &Rule) -> String {
    match rule {
        Rule::Pattern { list, index, pattern } => format!("{}[{index}] {pattern}", list.as_str()),
        Rule::Always { index } => format!("always[{index}]: this very action was approved for ever"),
        Rule::Default => "no rule matches it".into(),
        Rule::Shell { reason } => format!("it is asked about because {reason}"),
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
                let approver = may_answer(&Answerer { who: by.clone(), approver: true }, requester, action);
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
