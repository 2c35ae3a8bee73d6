//! Asking an agent's model to write down what must not be forgotten of messages that leave its window.

use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use chorus_proto::{NewMessage, Role, WorkingSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Facts;
use super::registry::Registry;
use crate::estimate;
use crate::llm::{CallError, Class, Reply, Request, Shape, Stop, Target};
use crate::message::{ContextNo, Stored, Totals};
use crate::summary::{Found, Piece, form, piece, read};
use crate::usage::{CallKind, Caller};

/// What the model is told that it is.
const SYSTEM: &str = "You take short, factual notes of conversations that others had.";

/// The form of its answer.
const NOTES: Shape = Shape {
    name: "write_down",
    description: "Writes down what must not be forgotten of the transcript.",
    schema: form,
};

/// How long somebody waits for all of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Messages with fewer characters are not worth a call.
const LEAST_SAID: u64 = 400;

/// The longest answer, in tokens, and the shortest that is asked for.
const ANSWER: u64 = 4096;
const SHORT_ANSWER: u64 = 512;

/// Bytes of a piece for a model whose window is not known; of the longest and of the shortest piece.
const USUAL: usize = 24 << 10;
const MOST: usize = 96 << 10;
const LEAST: usize = 2 << 10;

/// A model that takes less than was thought is asked again with so much less.
const LESS: usize = 4;

/// What came of it.
#[derive(Debug)]
pub enum Extracted {
    /// There is no model, or not enough to ask about.
    NotAsked,
    Found(Box<Found>),
    /// Why there is nothing, for people.
    InVain(String),
}

/// Who asks, and for what.
#[derive(Debug)]
pub struct Extraction<'a> {
    pub registry: &'a Registry,
    pub facts: &'a Facts,
    /// The context, and the turn that waits for it.
    pub of: (Option<ContextNo>, Option<Uuid>),
    pub record: &'a [Stored],
    /// Those that leave.
    pub leaving: Range<usize>,
    /// What is known of those that left before.
    pub known: &'a WorkingSet,
}

impl Extraction<'_> {
    /// Asks, piece by piece. One piece that comes to nothing is the end of it: half of what was said is no account.
    pub async fn run(self, cancel: CancellationToken) -> Extracted {
        let model = self.facts.model.as_deref().map(|model| self.registry.models.resolve(model));
        let said = self.record.get(self.leaving.clone()).map_or(0, |leaving| Totals::of(leaving).chars);
        let Some(Ok(target)) = model.filter(|_| said >= LEAST_SAID) else { return Extracted::NotAsked };
        match self.all(&target, cancel).await {
            Ok(found) => Extracted::Found(Box::new(found)),
            Err(why) => {
                tracing::warn!(agent = %self.facts.name, model = %target, why, "a model was asked for notes in vain");
                Extracted::InVain(why)
            }
        }
    }

    async fn all(&self, target: &Target, cancel: CancellationToken) -> Result<Found, String> {
        let takes = self.registry.models.window_of(target);
        let mut room = takes.and_then(|tokens| usize::try_from(tokens).ok()).map_or(USUAL, |tokens| tokens / 4 * 5);
        room = room.clamp(LEAST, MOST);
        let answer = takes.map_or(ANSWER / 2, |takes| (takes / 6).clamp(SHORT_ANSWER, ANSWER));
        let end = Instant::now() + PATIENCE;
        let (mut found, mut known) = (Found::default(), self.known.clone());
        let mut from = self.leaving.start;
        while from < self.leaving.end {
            let message = |number: usize| self.record.get(number).and_then(|message| message.to_message().ok());
            // What is left was written by Chorus itself.
            let Some(piece) = piece(from..self.leaving.end, message, &known, room) else { break };
            match self.ask(target, &piece, answer, end, &cancel).await {
                Ok(reply) => {
                    let next = self.take(&reply, &piece, &known).map_err(|why| format!("the model's answer {why}"))?;
                    next.clone().add_to(&mut known);
                    found.join(next);
                    from = piece.next;
                }
                Err(error) if error.class == Class::ContextTooLong && room > LEAST => room = (room / LESS).max(LEAST),
                Err(error) => return Err(error.message),
            }
        }
        Ok(found)
    }

    fn take(&self, reply: &Reply, piece: &Piece, known: &WorkingSet) -> Result<Found, &'static str> {
        if reply.stop == Stop::Refused {
            return Err("is a refusal");
        }
        let said = reply.shaped().to_owned();
        let said = if self.facts.redact { self.registry.models.redactor().cut_text(said) } else { said };
        match read(&said, piece, known) {
            // There may be pieces of small talk.
            Err("says nothing") if said.contains('{') => Ok(Found::default()),
            read => read,
        }
    }

    async fn ask(
        &self,
        target: &Target,
        piece: &Piece,
        answer: u64,
        end: Instant,
        cancel: &CancellationToken,
    ) -> Result<Reply, CallError> {
        let Self { registry, facts, of: (context, turn_id), .. } = *self;
        if let Err(failure) = registry.usage.may_call(facts).await {
            return Err(CallError::new(Class::SpendCap, failure.message));
        }
        let at = registry.clock.now();
        let asked = NewMessage::text(Role::User, &*piece.text).complete(|| Uuid::now_v7().to_string(), at);
        let request = Request {
            messages: vec![asked],
            system: vec![SYSTEM.to_owned()],
            shape: Some(&NOTES),
            max_tokens: u32::try_from(answer).unwrap_or(u32::MAX),
            ..Request::default()
        };
        let estimated = estimate::request(&request);
        let stop = cancel.child_token();
        let mut call = pin!(registry.models.call_shaped(target, request, stop.clone()));
        let called = match tokio::time::timeout_at(end, &mut call).await {
            Ok(called) => called,
            Err(_) => {
                stop.cancel();
                // What it has cost until then is known only at its end.
                call.await.map_err(|error| CallError { message: "the model took too long".to_owned(), ..error })
            }
        };
        let caller = Caller { facts, context, turn_id, kind: CallKind::Compaction, target, estimated, at };
        if let Some(row) = caller.ended(&called) {
            registry.usage.note(row).await;
        }
        called
    }
}
