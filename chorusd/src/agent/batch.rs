//! Carrying out the calls of one answer: beside each other, or one after the other where somebody is to be asked about one.

use std::sync::{Arc, OnceLock};

use chorus_proto::methods::send::Said;
use chorus_proto::{EventType, ToolCall};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::allowance::{Breaker, SKIPPED};
use super::call::moment;
use super::effect::Planned;
use super::event::{Event, ToolEnded};
use super::registry::Registry;
use super::voice::Voices;
use crate::failure::Failure;
use crate::store::journal::NewEvent;
use crate::tools::{self, Outcome, Scene};
use crate::who::Requester;

/// Characters of an error that observers are told.
const TOLD: usize = 300;

/// Where the calls of one answer are made.
#[derive(Debug, Clone)]
pub struct Batch {
    pub registry: Arc<Registry>,
    pub agent: Uuid,
    /// The agent's name.
    pub name: String,
    /// The turn and the step.
    pub of: (Uuid, u32),
    /// The message that has the calls.
    pub message: Option<String>,
    /// Who asked for the turn.
    pub by: Requester,
    /// The turn is to end.
    pub cancel: CancellationToken,
    pub voices: Voices,
}

/// What came of a call, on its way to the turn.
#[derive(Debug)]
struct Came {
    outcome: Outcome,
    /// It was not begun, because too many before it had failed.
    skipped: bool,
}

/// A call and its place in the answer, with where what comes of it is told.
#[derive(Debug)]
struct Begun {
    at: usize,
    planned: Planned,
    tell: oneshot::Sender<Came>,
}

impl Batch {
    /// Begins; each call has a future that tells when it has ended.
    pub fn run(self, calls: Vec<Planned>, breaker: Breaker) -> Vec<BoxFuture<'static, Event>> {
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for (at, planned) in calls.into_iter().enumerate() {
            let (tell, told) = oneshot::channel();
            ended.push(self.clone().ended(at, planned.call.clone(), told).boxed());
            begun.push(Begun { at, planned, tell });
        }
        tokio::spawn(self.carry_out(begun, breaker));
        ended
    }

    /// Begins one call after the other, never more beside each other than may still fail in a row; what is behind so many failures
    /// is not begun. What takes no time is waited for, so that calls behind it find what it did; everything is where one of them is
    /// asked about: people answer one question at a time, and see what came of the calls before.
    async fn carry_out(self, calls: Vec<Begun>, mut breaker: Breaker) {
        let one_by_one = self.asks(&calls).await;
        let mut run = FuturesUnordered::new();
        for begun in calls {
            while run.len() >= breaker.room() as usize
                && let Some((_, failed)) = run.next().await
            {
                count(&mut breaker, failed);
            }
            let at = begun.at;
            let waits = one_by_one || tools::in_order(&begun.planned.call.name);
            let skipped = breaker.room() == 0 && !self.cancel.is_cancelled();
            let batch = self.clone();
            // A task of its own: one that panics takes nothing else along.
            let task = tokio::spawn(async move { batch.call(begun, skipped).await });
            run.push(task.map(move |failed| (at, failed.unwrap_or_default())));
            while waits && let Some((ended, failed)) = run.next().await {
                count(&mut breaker, failed);
                if ended == at {
                    break;
                }
            }
        }
    }

    /// Whether somebody is to be asked about one of these.
    async fn asks(&self, calls: &[Begun]) -> bool {
        let Some(scene) = self.scene() else { return false };
        for begun in calls.iter().filter(|begun| begun.planned.refused.is_none()) {
            if tools::asks(&begun.planned.call, &scene).await {
                return true;
            }
        }
        false
    }

    /// Makes a call. Whether it has failed; `None`: it was not begun.
    async fn call(self, Begun { planned, tell, .. }: Begun, skipped: bool) -> Option<bool> {
        let call = planned.call.clone();
        let skipped = skipped && planned.refused.is_none();
        let refused = planned.refused.or(skipped.then_some(SKIPPED));
        let begins = refused.is_none();
        self.begins(&call);
        let outcome = std::panic::AssertUnwindSafe(self.one(Planned { refused, ..planned })).catch_unwind().await;
        let outcome = self.ends(&call, outcome.unwrap_or_else(|_| broken()));
        if matches!(outcome, Outcome::Stop(_)) {
            self.cancel.cancel();
        }
        let failed = !matches!(outcome, Outcome::Told { is_error: false, .. });
        let _ = tell.send(Came { outcome, skipped });
        begins.then_some(failed)
    }

    async fn one(&self, planned: Planned) -> Outcome {
        if let Some(why) = planned.refused {
            return Outcome::error(why);
        }
        match self.scene() {
            Some(scene) if !self.cancel.is_cancelled() => tools::carry_out(planned.call, Arc::new(scene)).await,
            _ => Outcome::error("the turn was cancelled before this ran"),
        }
    }

    /// Tells that a call begins, before anybody is asked about it.
    fn begins(&self, call: &ToolCall) {
        self.tell(EventType::ToolStarted, json!({"turn_id": self.of.0, "id": call.id, "name": call.name}));
        self.voices.say(&Said::Tool { id: call.id.clone(), name: call.name.clone() });
    }

    /// Takes secrets out of what came of a call, and tells that it has ended, before the one behind it begins.
    fn ends(&self, call: &ToolCall, outcome: Outcome) -> Outcome {
        let redact = self.registry.directory.by_id(self.agent).is_none_or(|entry| entry.facts.redact);
        let outcome = outcome.redacted(self.registry.models.redactor(), redact);
        let wrong = match &outcome {
            Outcome::Told { is_error: false, .. } => None,
            Outcome::Told { text, .. } => Some(text),
            Outcome::Stop(failure) => Some(&failure.message),
        };
        let is_error = wrong.is_some();
        let mut data = json!({"turn_id": self.of.0, "id": call.id, "name": call.name, "is_error": is_error});
        if let Some(line) = wrong.and_then(|text| text.lines().find(|line| !line.trim().is_empty())) {
            data["error"] = line.chars().take(TOLD).collect::<String>().into();
        }
        self.tell(EventType::ToolFinished, data);
        self.voices.say(&Said::Result { id: call.id.clone(), name: call.name.clone(), is_error });
        outcome
    }

    /// Tells observers; nobody waits for it.
    fn tell(&self, kind: EventType, data: Value) {
        let (at, agent) = (self.registry.clock.now(), Some(self.name.clone()));
        drop(self.registry.store.journal.emit(vec![NewEvent { at, kind, agent, data }]));
    }

    /// What a tool sees, as it is now: the profile of an agent may change between two calls.
    fn scene(&self) -> Option<Scene> {
        let facts = self.registry.directory.by_id(self.agent)?.facts.clone();
        let (voices, directory, agent) = (self.voices.clone(), self.registry.directory.clone(), self.agent);
        Some(Scene {
            agent: facts.id,
            agent_name: facts.name.clone(),
            project: facts.project.clone(),
            dir: facts.dir.clone(),
            turn: self.of.0,
            message: self.message.clone(),
            requester: self.by.clone(),
            profile: facts.profile.clone().unwrap_or_default(),
            profile_now: Box::new(move || directory.by_id(agent)?.facts.profile.clone().ok()),
            redactor: facts.redact.then(|| self.registry.models.redactor().clone()),
            cancel: self.cancel.clone(),
            agreed: OnceLock::new(),
            say: Box::new(move |said| voices.say(&said)),
            world: self.registry.world.clone(),
        })
    }

    async fn ended(self, at: usize, call: ToolCall, told: oneshot::Receiver<Came>) -> Event {
        let Came { outcome, skipped } = told.await.unwrap_or_else(|_| Came { outcome: broken(), skipped: false });
        let (of, moment) = (self.of, moment(&self.registry));
        let (text, is_error, stop) = match outcome {
            Outcome::Told { text, is_error } => (text, is_error, None),
            Outcome::Stop(failure) => (failure.message.clone(), true, Some(failure)),
        };
        match tools::result_of(&call, text, is_error, moment.now) {
            Ok(result) => Event::ToolEnded(Box::new(ToolEnded { of, moment, at, result, is_error, skipped, stop })),
            Err(e) => Event::TurnClosed { turn: of.0, moment, result: Err(Failure::internal(e.to_string())) },
        }
    }
}

/// One that was begun has ended.
fn count(breaker: &mut Breaker, failed: Option<bool>) {
    if let Some(failed) = failed {
        breaker.ended(failed);
    }
}

/// What comes of a tool that panics.
fn broken() -> Outcome {
    Outcome::error("the tool failed: it ended in the middle")
}
