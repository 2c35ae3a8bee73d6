//! Carrying out the calls of one answer: beside each other, or one after the other where somebody is to be asked about one.

use std::sync::Arc;

use chorus_proto::ToolCall;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call::moment;
use super::effect::Planned;
use super::event::{Event, ToolEnded};
use super::registry::Registry;
use super::voice::Voices;
use crate::failure::Failure;
use crate::tools::{self, Outcome, Scene};
use crate::who::Requester;

/// Where the calls of one answer are made.
#[derive(Debug, Clone)]
pub struct Batch {
    pub registry: Arc<Registry>,
    pub agent: Uuid,
    /// The turn and the step.
    pub of: (Uuid, u32),
    /// Who asked for the turn.
    pub by: Requester,
    /// The turn is to end.
    pub cancel: CancellationToken,
    pub voices: Voices,
}

impl Batch {
    /// Begins; each call has a future that tells when it has ended.
    pub fn run(self, calls: Vec<Planned>) -> Vec<BoxFuture<'static, Event>> {
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for planned in calls {
            let (tell, told) = oneshot::channel();
            ended.push(self.clone().ended(planned.call.clone(), told).boxed());
            begun.push((planned, tell));
        }
        tokio::spawn(self.carry_out(begun));
        ended
    }

    /// Begins one call after the other. What takes no time is waited for, so that calls behind it find what it did; everything is
    /// where one of them is asked about: people answer one question at a time, and see what came of the calls before.
    async fn carry_out(self, calls: Vec<(Planned, oneshot::Sender<Outcome>)>) {
        let mut asks = false;
        if let Some(scene) = self.scene() {
            for (planned, _) in calls.iter().filter(|(planned, _)| planned.refused.is_none()) {
                asks = asks || tools::asks(&planned.call, &scene).await;
            }
        }
        for (planned, tell) in calls {
            let waits = asks || tools::in_order(&planned.call.name);
            let batch = self.clone();
            // A task of its own: one that panics takes nothing else along.
            let task = tokio::spawn(async move {
                let outcome = batch.one(planned).await;
                if matches!(outcome, Outcome::Stop(_)) {
                    batch.cancel.cancel();
                }
                let _ = tell.send(outcome);
            });
            if waits {
                let _ = task.await;
            }
        }
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

    /// What a tool sees, as it is now: the profile of an agent may change between two calls.
    fn scene(&self) -> Option<Scene> {
        let facts = self.registry.directory.by_id(self.agent)?.facts.clone();
        let (voices, directory, agent) = (self.voices.clone(), self.registry.directory.clone(), self.agent);
        Some(Scene {
            agent: facts.id,
            agent_name: facts.name.clone(),
            dir: facts.dir.clone(),
            turn: self.of.0,
            requester: self.by.clone(),
            profile: facts.profile.clone().unwrap_or_default(),
            profile_now: Box::new(move || directory.by_id(agent)?.facts.profile.clone().ok()),
            redactor: facts.redact.then(|| self.registry.models.redactor().clone()),
            cancel: self.cancel.clone(),
            say: Box::new(move |said| voices.say(&said)),
            world: self.registry.world.clone(),
        })
    }

    async fn ended(self, call: ToolCall, told: oneshot::Receiver<Outcome>) -> Event {
        let outcome = told.await.unwrap_or_else(|_| Outcome::error("the tool failed: it ended in the middle"));
        let redact = self.registry.directory.by_id(self.agent).is_none_or(|entry| entry.facts.redact);
        let outcome = outcome.redacted(self.registry.models.redactor(), redact);
        let (of, moment) = (self.of, moment(&self.registry));
        let (text, is_error, stop) = match outcome {
            Outcome::Told { text, is_error } => (text, is_error, None),
            Outcome::Stop(failure) => (failure.message.clone(), true, Some(failure)),
        };
        match tools::result_of(&call, text, is_error, moment.now) {
            Ok(result) => Event::ToolEnded(Box::new(ToolEnded { of, moment, call: call.id, result, is_error, stop })),
            Err(e) => Event::TurnClosed { turn: of.0, moment, result: Err(Failure::internal(e.to_string())) },
        }
    }
}
