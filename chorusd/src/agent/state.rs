//! The agent as a pure function: an event in, a list of effects out. No I/O, no clock, no runtime.
//!
//! Appends flow: many may be under way, and each is taken into the context when the journal has it. Everything that
//! saves, clears or replaces the context is exclusive: it waits for the appends before it, and keeps the requests
//! after it waiting.

use core::time::Duration;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use chorus_proto::{ErrorKind, EventType, Receipt, Role, Session, TokenPair, WorkingSet};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::Facts;
use super::compaction::Compaction;
use super::context::{Context, Deadline, Pick, Room, page};
use super::cut_off::CutOff;
use super::effect::{Append, Beginning, Effect, Mark};
use super::event::{Asked, Event, Journalled, Reply, Request, RequestId, Restore, Resume, Verb};
use super::queue::Queued;
use super::sent_again::Unanswered;
use super::turn::{LeftOpen, Moment, Turn};
use crate::failure::{Failure, Result};
use crate::message::{Stored, Totals};

/// Appends that may be under way at once.
const MAX_PENDING: usize = 1024;

/// Appends that may wait for the results of calls.
const MAX_PARKED: usize = 256;

/// An agent's live state.
#[derive(Debug, Default)]
pub struct State {
    pub(super) context: Option<Context>,
    /// The context that the first appends will begin, until one of them is durable.
    beginning: Option<Beginning>,
    /// Number of the next record.
    pub(super) next_record: u32,
    pub(super) pending: VecDeque<Pending>,
    /// An exclusive request that waits for the appends before it.
    pub(super) waiting: Option<Request>,
    pub(super) busy: Option<Busy>,
    /// Why the context could not be read back, where it could not.
    pub(super) broken: Option<Failure>,
    pub(super) turn: Option<Turn>,
    /// Turns that wait for the one that runs.
    pub(super) queue: VecDeque<Queued>,
    /// What waits until calls have their results.
    parked: VecDeque<(Asked, Verb)>,
    /// What the turn brings while something exclusive is under way.
    deferred: VecDeque<Event>,
    /// A turn that the daemon ended in.
    left_open: Option<LeftOpen>,
    /// One of these in which nothing was done: it can be gone on with.
    pub(super) unbegun: Option<Uuid>,
    pub(super) unanswered: Option<Unanswered>,
}

/// An append on its way into the journal.
#[derive(Debug)]
pub(super) struct Pending {
    pub owner: Owner,
    pub begin: Beginning,
    pub messages: Vec<Stored>,
    pub at: Timestamp,
    pub deadline: Option<Deadline>,
}

/// Whose append it is.
#[derive(Debug)]
pub(super) enum Owner {
    Request(RequestId),
    /// It may be over when this ends.
    Turn(Uuid),
    /// What closes a turn that the daemon ended in.
    LeftOpen,
    /// No messages, but some that leave the window.
    Compaction(Box<Compaction>),
}

/// An exclusive request under way.
#[derive(Debug)]
pub(super) enum Busy {
    Writing { request: RequestId, then: Then },
    Ending { request: RequestId, reply: Reply, notice: Option<Effect> },
    Replacing { request: RequestId, context: Box<Context>, by: By, saved_first: Option<Box<Session>> },
    Changing { request: RequestId, context: Box<Context>, reply: Reply },
    Materialising { request: RequestId, session: Uuid },
    Held,
}

/// What takes the place of a context.
#[derive(Debug)]
pub(super) struct By {
    /// The session that it is, by its id and its name; told when it is there. What goes on from a session is told with its commit.
    pub restored: Option<(Uuid, String)>,
    /// Number of its next record.
    pub next_record: u32,
    /// What was gained by it, where the context was compacted.
    pub receipt: Option<Box<Receipt>>,
}

/// What follows a save.
#[derive(Debug)]
pub(super) enum Then {
    Answer,
    Compact,
    Clear,
    ClearWith { discarded: u64 },
    Restore(Box<(Beginning, Box<Restore>)>),
    Resume(Box<(Beginning, Box<Resume>)>),
    PutAway { end: bool },
    Idle { timeout: Duration },
}

impl State {
    /// The state of an agent whose context was read back.
    #[must_use]
    pub fn recovered(context: Context, next_record: u32, left_open: Option<LeftOpen>) -> Self {
        Self { context: Some(context), next_record, left_open, ..Self::default() }
    }

    /// The state of an agent whose context could not be read back: it can only be cleared or replaced.
    #[must_use]
    pub fn broken(context: Context, failure: Failure) -> Self {
        Self { context: Some(context), broken: Some(failure), ..Self::default() }
    }

    /// Whether a request would be taken now.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.busy.is_none() && self.waiting.is_none() && self.pending.len() < MAX_PENDING
    }

    /// Whether there is nothing to keep an actor for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.context.is_none() && self.is_at_rest()
    }

    /// Whether the context could not be read back, and nothing is under way that does without it.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.is_some() && self.busy.is_none() && self.waiting.is_none()
    }

    /// Whether nothing is under way, so that the journal has all there is to know.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let under_way = self.busy.is_some() || self.waiting.is_some() || self.turn.is_some();
        !under_way && self.pending.is_empty() && self.queue.is_empty() && self.parked.is_empty()
    }

    /// The live context.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Takes an event.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.take(event, &mut effects);
        while self.busy.is_none()
            && let Some(event) = self.deferred.pop_front()
        {
            self.take(event, &mut effects);
        }
        let turn_lets = |request: &mut Request| self.turn.is_none() || CutOff::by(&request.verb).is_none();
        if self.pending.is_empty()
            && self.busy.is_none()
            && let Some(request) = self.waiting.take_if(turn_lets)
        {
            self.exclusive(request, &mut effects);
        }
        self.next_turn(&mut effects);
        effects
    }

    fn take(&mut self, event: Event, effects: &mut Vec<Effect>) {
        let of_turn = matches!(event, Event::Called { .. } | Event::Compacted { .. } | Event::ToolEnded(_))
            || matches!(event, Event::TurnClosed { .. });
        if of_turn && self.busy.is_some() {
            // What is under way has a copy of the context.
            self.deferred.push_back(event);
            return;
        }
        match event {
            Event::Request(request) => {
                self.close_left_open(&request.asked, effects);
                self.heed(&request.asked.facts);
                self.request(*request, effects);
            }
            Event::Called { of, moment, result } => self.called(of, moment, *result, effects),
            Event::Compacted { of, moment, compaction } => self.shrink(of, moment, compaction, effects),
            Event::ToolEnded(ended) => self.tool_ended(*ended, effects),
            Event::TurnClosed { turn, moment, result } => self.turn_closed(turn, moment, result, effects),
            Event::Appended(result) => self.appended(result, effects),
            Event::Written(result) => self.written(result, effects),
            Event::Ended(result) => self.ended(result, effects),
            Event::Replaced(result) => self.replaced(result, effects),
            Event::Materialised(result) => self.materialised(result, effects),
            Event::Changed(result) => self.changed(result, effects),
            Event::Released => self.busy = None,
        }
    }

    /// Closes what a crash left open, before anything else.
    fn close_left_open(&mut self, asked: &Asked, effects: &mut Vec<Effect>) {
        let (Some(left), Some(begin)) = (self.left_open.take(), self.going_on()) else { return };
        let mark = Mark::Close { turn: left.turn, key: None, answer: None };
        let data = json!({"turn_id": left.turn, "reason": "the daemon ended in the middle of it"});
        effects.push(Effect::Tell(EventType::TurnInterrupted, data));
        let last = self.context.as_ref().and_then(|context| context.messages.last());
        self.unbegun = last.filter(|last| last.role() == Role::User).map(|_| left.turn);
        if left.results.is_empty() {
            effects.push(Effect::CloseTurn { context: begin.context, mark });
            return;
        }
        let begin = Beginning { agent: asked.facts.id, ..begin };
        let (first, at, deadline) = (self.next_record, asked.now, begin.deadline);
        self.next_record = first.saturating_add(u32::try_from(left.results.len()).unwrap_or(u32::MAX));
        let messages = left.results;
        let agent_name = asked.facts.name.clone();
        let copy = messages.clone();
        let owner = Owner::LeftOpen;
        self.pending.push_back(Pending { owner, begin: begin.clone(), messages, at, deadline });
        let append = Append { begin, agent_name, first, messages: copy, at, deadline, key: None, mark: Some(mark) };
        effects.push(Effect::Append(Box::new(append)));
    }

    fn request(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Request { asked, verb } = request;
        match verb {
            Verb::Append { .. } | Verb::Send(_) if self.broken.is_some() => {
                let failure = self.broken.clone().unwrap_or_else(Failure::busy);
                effects.push(Effect::Reply(asked.id, Err(failure)));
            }
            Verb::Append { .. } if self.calls_open() && self.parked.len() >= MAX_PARKED => {
                effects.push(Effect::Reply(asked.id, Err(Failure::busy())));
            }
            Verb::Append { .. } if self.calls_open() => self.parked.push_back((asked, verb)),
            Verb::Append { messages, key } => {
                let (at, deadline) = (asked.now, deadline(&asked));
                let begin = self.beginning(&asked);
                let first = self.next_record;
                self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
                let copy = messages.clone();
                let owner = Owner::Request(asked.id);
                self.pending.push_back(Pending { owner, begin: begin.clone(), messages, at, deadline });
                let agent_name = asked.facts.name.clone();
                let append = Append { begin, agent_name, first, messages: copy, at, deadline, key, mark: None };
                effects.push(Effect::Append(Box::new(append)));
            }
            // Nobody sees the calls that are just being closed.
            Verb::Show { .. } | Verb::Window
                if self.pending.iter().any(|pending| matches!(pending.owner, Owner::LeftOpen)) =>
            {
                self.parked.push_back((asked, verb));
            }
            Verb::Window => {
                let window = || Reply::Window(Box::new(self.next_call(&asked.facts)));
                let reply = self.broken.clone().map_or_else(|| Ok(window()), Err);
                effects.push(Effect::Reply(asked.id, reply));
            }
            Verb::Show { pick, room } => effects.push(Effect::Reply(asked.id, self.show(pick, room))),
            Verb::Send(send) => self.send(asked, *send, effects),
            Verb::Cancel(which) => self.cancel(asked.id, which, effects),
            Verb::TakeBack(turn) => {
                let taken = self.take_back(turn, effects).then_some(turn);
                effects.push(Effect::Reply(asked.id, Ok(Reply::Cancelled(taken))));
            }
            Verb::IsFree if self.turn.is_none() => effects.push(Effect::Reply(asked.id, Ok(Reply::Done))),
            Verb::EndTurns => {
                self.stop_turn(CutOff::Stop, effects);
                self.refuse_queued(CutOff::Stop, effects);
                effects.push(Effect::Reply(asked.id, Ok(Reply::Done)));
            }
            Verb::Wake => effects.push(Effect::Reply(asked.id, Ok(Reply::Done))),
            verb if self.turn.is_some() && is_refused_in_turns(&verb) => {
                let failure = Failure::new(ErrorKind::Busy, format!("a turn of {} is running", asked.facts.name))
                    .hint("wait for its end, or end it: Ctrl-C where it was sent, `send.cancel` on the socket");
                effects.push(Effect::Reply(asked.id, Err(failure)));
            }
            verb => {
                if let Some(why) = CutOff::by(&verb) {
                    self.stop_turn(why, effects);
                    self.refuse_queued(why, effects);
                }
                self.waiting = Some(Request { asked, verb });
            }
        }
    }

    /// Takes the appends that waited for results.
    pub(super) fn unpark(&mut self, effects: &mut Vec<Effect>) {
        for (asked, verb) in mem::take(&mut self.parked) {
            self.request(Request { asked, verb }, effects);
        }
    }

    /// The live context, as messages go into it.
    pub(super) fn going_on(&self) -> Option<Beginning> {
        let context = self.context.as_ref()?;
        Some(Beginning {
            context: context.no,
            agent: Uuid::nil(),
            started_at: context.started_at,
            deadline: context.deadline,
            parent: context.parent,
        })
    }

    /// The context that messages go into: the live one, or one that is about to begin.
    pub(super) fn beginning(&mut self, asked: &Asked) -> Beginning {
        if let Some(begin) = self.going_on() {
            return Beginning { agent: asked.facts.id, ..begin };
        }
        self.beginning
            .get_or_insert_with(|| {
                self.next_record = 0;
                Beginning {
                    context: asked.fresh,
                    agent: asked.facts.id,
                    started_at: asked.now,
                    deadline: deadline(asked),
                    parent: None,
                }
            })
            .clone()
    }

    fn show(&self, pick: Pick, room: Room) -> Result<Reply> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let Some(context) = &self.context else {
            return Ok(Reply::Page { messages: Vec::new(), working_set: Box::default(), info: None, next: None });
        };
        let (messages, next) = page(&context.messages, pick, room);
        let working_set = Box::new(context.working_set.clone());
        Ok(Reply::Page { messages, working_set, info: Some(context.info()), next })
    }

    fn appended(&mut self, result: Result<Journalled>, effects: &mut Vec<Effect>) {
        let Some(pending) = self.pending.pop_front() else { return };
        if matches!(result, Ok(Journalled::Now(_))) {
            self.beginning = None;
            self.context.get_or_insert_with(|| begun(&pending.begin)).push(
                pending.messages,
                pending.at,
                pending.deadline,
            );
        }
        if self.pending.is_empty() {
            // Whatever was to begin did so, or every append of it came to nothing.
            self.beginning = None;
        }
        match (pending.owner, result) {
            (Owner::Turn(turn), Ok(Journalled::Known(known))) => self.turn_kept(turn, Ok(Some(known)), effects),
            (Owner::Turn(turn), result) => self.turn_kept(turn, result.map(|_| None), effects),
            (Owner::Compaction(compaction), result) => self.shrunk(*compaction, result.map(drop), effects),
            (Owner::LeftOpen, _) => self.unpark(effects),
            (Owner::Request(request), Ok(Journalled::Now(answer) | Journalled::Before(answer))) => {
                effects.push(Effect::Reply(request, Ok(Reply::Appended(answer))));
            }
            (Owner::Request(request), Err(failure)) => effects.push(Effect::Reply(request, Err(failure))),
            // Only turns have marks, and only compactions no messages.
            (Owner::Request(request), Ok(Journalled::Known(_) | Journalled::Noted)) => {
                effects.push(Effect::Reply(request, Err(Failure::internal("an append with the key of a turn"))));
            }
        }
    }

    pub(super) fn forget(&mut self) {
        *self = Self {
            busy: mem::take(&mut self.busy),
            waiting: mem::take(&mut self.waiting),
            queue: mem::take(&mut self.queue),
            ..Self::default()
        };
    }
}

/// When a context that saw this is put away.
pub(super) fn deadline(asked: &Asked) -> Option<Deadline> {
    deadline_of(&asked.facts, Moment { now: asked.now, ticks: asked.ticks })
}

/// When a context is put away in which something happened at that moment.
pub(super) fn deadline_of(facts: &Facts, moment: Moment) -> Option<Deadline> {
    let timeout = facts.idle_timeout?;
    Some(Deadline { due: moment.ticks.after(timeout), at: moment.now.checked_add(timeout).ok()? })
}

/// What would take the context away from under a turn.
fn is_refused_in_turns(verb: &Verb) -> bool {
    matches!(verb, Verb::Clear { .. } | Verb::Restore(_) | Verb::Rewind { .. } | Verb::Unrewind)
        || matches!(verb, Verb::SaveToCompact | Verb::IsFree | Verb::Resume(_) | Verb::Uncompact)
        || matches!(verb, Verb::Save { clear: true, .. } | Verb::Hold { goes: false })
}

pub(super) fn begun(begin: &Beginning) -> Context {
    Context {
        no: begin.context,
        started_at: begin.started_at,
        last_activity_at: begin.started_at,
        deadline: begin.deadline,
        parent: begin.parent,
        messages: Arc::default(),
        totals: Totals::default(),
        saved: 0,
        saved_session: None,
        held_pins: Vec::new(),
        base_session: None,
        working_set: WorkingSet::default(),
        rewound: Vec::new(),
        compactions: Vec::new(),
        uncompacted: 0,
        restoration: TokenPair::default(),
    }
}

pub(super) fn nothing_there(name: &str) -> Failure {
    Failure::new(ErrorKind::NothingToSave, format!("the context of {name} is empty"))
        .hint("`chorusctl context append` or `context restore` fills it")
}
