//! Asking an agent's model to write down what must not be forgotten of messages that leave its window.

use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use chorus_proto::{Message, NewMessage, Role, WorkingSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Facts;
use super::registry::Registry;
use crate::clock::new_id;
use crate::estimate;
use crate::llm::{CallError, Class, Reply, Request, Shape, Stop, Target};
use crate::message::{ContextNo, Stored, Totals};
use crate::summary::{self, Found, Notes, Piece, findings, form, newest, piece, read};
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
pub const LEAST_SAID: u64 = 400;

/// The longest answer, in tokens, and the shortest that is asked for.
const ANSWER: u64 = 4096;
const SHORT_ANSWER: u64 = 512;

/// Bytes of a piece for a model whose window is not known; of the longest and of the shortest piece.
const USUAL: usize = 24 << 10;
const MOST: usize = 96 << 10;
const LEAST: usize = 2 << 10;

/// The model reads no more pieces; what is older is left to rules.
const PIECES: usize = 8;

/// A model that takes less than was thought is asked again with so much less, and one whose answer was cut, with so much.
const LESS: usize = 4;
const SHORTER: usize = 2;

/// What came of it.
#[derive(Debug)]
pub enum Extracted {
    /// There is no model, or not enough to ask about.
    NotAsked,
    Found(Box<Notes>),
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
    /// An answer that fails, or was cut, is not asked for again.
    pub once: bool,
}

/// How the model is asked.
struct Asking<'a> {
    target: &'a Target,
    /// The longest answer, in tokens.
    answer: u64,
    /// When nobody waits any longer.
    end: Instant,
    cancel: &'a CancellationToken,
    /// A failure that passes by itself is waited for, once.
    patient: bool,
}

impl Extraction<'_> {
    /// Asks, piece by piece, the oldest first. Where one comes to nothing, what was found before it is kept, and rules take the place of
    /// the model for what is left; so they do for what is older than the model is asked to read.
    pub async fn run(self, cancel: CancellationToken) -> Extracted {
        let said = self.record.get(self.leaving.clone()).map_or(0, |leaving| Totals::of(leaving).chars);
        let Some(model) = self.facts.model.as_deref().filter(|_| said >= LEAST_SAID) else {
            return Extracted::NotAsked;
        };
        let target = match self.registry.models.resolve(model) {
            Ok(target) => target,
            Err(failure) => return Extracted::InVain(failure.message),
        };
        let (found, why) = self.all(&target, &cancel).await;
        let Some(why) = why else { return Extracted::Found(Box::new(found.into())) };
        tracing::warn!(agent = %self.facts.name, model = %target, why, "a model was asked for notes, and not all came");
        if found.is_of_a_model() {
            let fallback = Some(format!("some of it is by rules: {why}"));
            Extracted::Found(Box::new(Notes { found, fallback }))
        } else {
            Extracted::InVain(why)
        }
    }

    /// What was found, and why not all of it by the model.
    async fn all(&self, target: &Target, cancel: &CancellationToken) -> (Found, Option<String>) {
        let takes = self.registry.models.window_of(target);
        let mut room = takes.and_then(|tokens| usize::try_from(tokens).ok()).map_or(USUAL, |tokens| tokens / 4 * 5);
        room = room.clamp(LEAST, MOST);
        let answer = takes.map_or(ANSWER / 2, |takes| (takes / 6).clamp(SHORT_ANSWER, ANSWER));
        let mut asking = Asking { target, answer, end: Instant::now() + PATIENCE, cancel, patient: !self.once };
        let (mut found, mut known, mut why) = (Found::default(), self.known.clone(), None);
        let message = |number: usize| self.message(number);
        let (mut from, end) = (self.leaving.start, self.leaving.end);
        let (mut pieces, mut measured) = (PIECES, 0);
        while from < end {
            if measured != room {
                let begin = newest(from..end, message, room, pieces);
                if begin > from {
                    let older = begin - from;
                    why = Some(format!("the {older} older messages are more than the model is asked to read"));
                    self.by_rules(from..begin, &mut found, &mut known).await;
                }
                (from, measured) = (begin, room);
            }
            // What is left was written by Chorus itself.
            let Some(piece) = piece(from..end, message, &known, room) else { return (found, why) };
            let failed = match self.ask(&mut asking, &piece).await {
                Ok(reply) if reply.stop == Stop::MaxTokens && room > LEAST && !self.once => {
                    room = (room / SHORTER).max(LEAST);
                    continue;
                }
                Ok(reply) => match self.take(&reply, &piece, &known) {
                    Ok(next) => {
                        next.clone().add_to(&mut known);
                        found.join(next);
                        (from, pieces) = (piece.next, pieces.saturating_sub(1));
                        continue;
                    }
                    Err(why) => format!("the model's answer {why}"),
                },
                Err(error) if error.class == Class::ContextTooLong && room > LEAST => {
                    room = (room / LESS).max(LEAST);
                    continue;
                }
                Err(error) => error.message,
            };
            // How it stands is not known from half of it.
            found.summary = None;
            if found.is_of_a_model() && !cancel.is_cancelled() {
                self.by_rules(from..end, &mut found, &mut known).await;
            }
            return (found, Some(failed));
        }
        (found, why)
    }

    fn message(&self, number: usize) -> Option<Message> {
        self.record.get(number).and_then(|message| message.to_message().ok())
    }

    /// What rules find in these.
    async fn by_rules(&self, range: Range<usize>, found: &mut Found, known: &mut WorkingSet) {
        let messages = self.record.get(range).unwrap_or_default().to_vec();
        let before = known.clone();
        let next = tokio::task::spawn_blocking(move || Found::from(findings(&messages, &before, summary::MOST)));
        let next = next.await.unwrap_or_default();
        next.clone().add_to(known);
        found.join(next);
    }

    fn take(&self, reply: &Reply, piece: &Piece, known: &WorkingSet) -> Result<Found, &'static str> {
        match reply.stop {
            Stop::Refused => return Err("is a refusal"),
            Stop::MaxTokens => return Err("was cut: it had reached its greatest length"),
            _ => {}
        }
        let said = reply.shaped().to_owned();
        let said = if self.facts.redact { self.registry.models.redactor().cut_text(said) } else { said };
        match read(&said, piece, known) {
            // There may be pieces of small talk.
            Err("says nothing") if said.contains('{') => Ok(Found::default()),
            read => read,
        }
    }

    async fn ask(&self, asking: &mut Asking<'_>, piece: &Piece) -> Result<Reply, CallError> {
        let error = match self.ask_once(asking, piece).await {
            Err(error) if asking.patient => error,
            called => return called,
        };
        let wait = self.registry.models.patience(&error).filter(|wait| Instant::now() + *wait < asking.end);
        let Some(wait) = wait else { return Err(error) };
        asking.patient = false;
        tokio::select! {
            () = asking.cancel.cancelled() => Err(error),
            () = tokio::time::sleep(wait) => self.ask_once(asking, piece).await,
        }
    }

    async fn ask_once(&self, asking: &Asking<'_>, piece: &Piece) -> Result<Reply, CallError> {
        let Self { registry, facts, of: (context, turn_id), .. } = *self;
        let Asking { target, answer, end, cancel, .. } = *asking;
        if let Err(failure) = registry.usage.may_call(facts).await {
            return Err(CallError::new(Class::SpendCap, failure.message));
        }
        let at = registry.clock.now();
        let asked = NewMessage::text(Role::User, &*piece.text).complete(|| new_id().to_string(), at);
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
        let (kind, price) = (CallKind::Compaction, registry.models.price_of(target));
        let caller = Caller { facts, context, turn_id, kind, target, price, estimated, at };
        if let Some(row) = caller.ended(&called) {
            registry.usage.note(row).await;
        }
        called
    }
}
