//! The agent as a pure function: an event in, a list of effects out. No I/O, no clock, no runtime.
//!
//! Appends flow: many may be under way, and each is taken into the context when the journal has it. Everything that
//! saves, clears or replaces the context is exclusive: it waits for the appends before it, and keeps the requests
//! after it waiting.

use core::time::Duration;
use std::collections::VecDeque;
use std::mem;

use chorus_proto::methods::context::ClearResult;
use chorus_proto::{ErrorKind, Session, Trigger, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use super::context::{Context, Deadline, Pick, Room, page};
use super::effect::{Append, Beginning, Draft, Effect};
use super::event::{Asked, Event, Journalled, Reply, Request, RequestId, Restore, Verb};
use crate::clock::Ticks;
use crate::failure::{Failure, Result};
use crate::message::{Stored, Totals};

/// Appends that may be under way at once.
const MAX_PENDING: usize = 1024;

/// An agent's live state.
#[derive(Debug, Default)]
pub struct State {
    pub(super) context: Option<Context>,
    /// The context that the first appends will begin, until one of them is durable.
    beginning: Option<Beginning>,
    /// Number of the next record.
    pub(super) next_record: u32,
    pending: VecDeque<Pending>,
    /// An exclusive request that waits for the appends before it.
    waiting: Option<Request>,
    pub(super) busy: Option<Busy>,
    /// Why the context could not be read back, where it could not.
    broken: Option<Failure>,
}

#[derive(Debug)]
struct Pending {
    request: RequestId,
    begin: Beginning,
    messages: Vec<Stored>,
    at: Timestamp,
    deadline: Option<Deadline>,
}

/// An exclusive request under way.
#[derive(Debug)]
pub(super) enum Busy {
    Writing { request: RequestId, then: Then },
    Ending { request: RequestId, reply: Reply, notice: Option<Effect> },
    Replacing { request: RequestId, context: Box<Context>, session_id: String, saved_first: Option<Box<Session>> },
    Changing { request: RequestId, context: Box<Context>, reply: Reply },
    Materialising { request: RequestId, session: Uuid },
    Held,
}

/// What follows a save.
#[derive(Debug)]
pub(super) enum Then {
    Answer,
    Clear,
    ClearWith { discarded: u64 },
    Restore(Box<(Beginning, Box<Restore>)>),
    PutAway { end: bool },
    Idle { timeout: Duration },
}

impl State {
    /// The state of an agent whose context was read back.
    #[must_use]
    pub fn recovered(context: Context, next_record: u32) -> Self {
        Self { context: Some(context), next_record, ..Self::default() }
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
        self.pending.is_empty() && self.busy.is_none() && self.waiting.is_none()
    }

    /// The live context.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Takes an event.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Request(request) => self.request(*request, &mut effects),
            Event::Appended(result) => self.appended(result, &mut effects),
            Event::Written(result) => self.written(result, &mut effects),
            Event::Ended(result) => self.ended(result, &mut effects),
            Event::Replaced(result) => self.replaced(result, &mut effects),
            Event::Materialised(result) => self.materialised(result, &mut effects),
            Event::Changed(result) => self.changed(result, &mut effects),
            Event::Released => self.busy = None,
        }
        if self.pending.is_empty()
            && self.busy.is_none()
            && let Some(request) = self.waiting.take()
        {
            self.exclusive(request, &mut effects);
        }
        effects
    }

    fn request(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Request { asked, verb } = request;
        match verb {
            Verb::Append { messages, key } => {
                if let Some(failure) = &self.broken {
                    effects.push(Effect::Reply(asked.id, Err(failure.clone())));
                    return;
                }
                let (at, deadline) = (asked.now, deadline(&asked));
                let begin = self.beginning(&asked);
                let first = self.next_record;
                self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
                let copy = messages.clone();
                self.pending.push_back(Pending { request: asked.id, begin: begin.clone(), messages, at, deadline });
                let agent_name = asked.facts.name.clone();
                let append = Append { begin, agent_name, first, messages: copy, at, deadline, key };
                effects.push(Effect::Append(Box::new(append)));
            }
            Verb::Show { pick, room } => effects.push(Effect::Reply(asked.id, self.show(pick, room))),
            verb => self.waiting = Some(Request { asked, verb }),
        }
    }

    /// The context that messages go into: the live one, or one that is about to begin.
    fn beginning(&mut self, asked: &Asked) -> Beginning {
        if let Some(context) = &self.context {
            return Beginning {
                context: context.no,
                agent: asked.facts.id,
                started_at: context.started_at,
                deadline: context.deadline,
                parent: context.parent,
            };
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
        let reply = result.map(|journalled| match journalled {
            Journalled::Before(answer) => Reply::Appended(answer),
            Journalled::Now(answer) => {
                self.beginning = None;
                self.context.get_or_insert_with(|| begun(&pending.begin)).push(
                    pending.messages,
                    pending.at,
                    pending.deadline,
                );
                Reply::Appended(answer)
            }
        });
        if self.pending.is_empty() {
            // Whatever was to begin did so, or every append of it came to nothing.
            self.beginning = None;
        }
        effects.push(Effect::Reply(pending.request, reply));
    }

    /// Begins an exclusive request: no append is under way.
    fn exclusive(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Request { asked, verb } = request;
        let id = asked.id;
        // Without its messages a context can be cleared or replaced, and nothing else.
        let can_do_without = match &verb {
            Verb::Clear { save } => !save,
            Verb::Restore(restore) => restore.discard,
            Verb::Hold => true,
            _ => false,
        };
        if let Some(failure) = self.broken.as_ref().filter(|_| !can_do_without) {
            effects.push(Effect::Reply(id, Err(failure.clone())));
            return;
        }
        let discarded = self.context.as_ref().map_or(0, |context| context.totals.messages);
        let unsaved = self.context.as_ref().is_some_and(|context| context.unsaved() > 0);
        match verb {
            Verb::Append { .. } | Verb::Show { .. } | Verb::Rest => {}
            Verb::Save { .. } if discarded == 0 => {
                effects.push(Effect::Reply(id, Err(nothing_there(&asked.facts.name))));
            }
            Verb::Save { description, tags, clear } => {
                let then = if clear { Then::Clear } else { Then::Answer };
                self.write(&asked, Trigger::ManualSave, then, description, tags, effects);
            }
            Verb::Clear { save: true } if discarded > 0 => {
                self.put(&asked, Trigger::ContextClear, Then::ClearWith { discarded }, effects);
            }
            Verb::Clear { .. } => {
                let pins = self.context.as_ref().map_or(0, Context::pins);
                self.end(id, Reply::Cleared(Box::new(ClearResult { discarded, pins, saved: None })), None, effects);
            }
            Verb::Restore(restore) => {
                let begin = Beginning {
                    context: asked.fresh,
                    agent: asked.facts.id,
                    started_at: asked.now,
                    deadline: deadline(&asked),
                    parent: Some(restore.session),
                };
                if unsaved && !restore.discard {
                    self.put(&asked, Trigger::Restore, Then::Restore(Box::new((begin, restore))), effects);
                } else {
                    self.replace(id, begin, restore, None, effects);
                }
            }
            Verb::PutAway { trigger, end } if unsaved => self.put(&asked, trigger, Then::PutAway { end }, effects),
            Verb::PutAway { end: true, .. } => self.end(id, Reply::PutAway(None), None, effects),
            Verb::PutAway { .. } => effects.push(Effect::Reply(id, Ok(Reply::PutAway(None)))),
            Verb::Idle { due } => self.idle(&asked, due, effects),
            Verb::Retime => {
                if let Some(context) = self.context.as_mut().filter(|context| context.totals.messages > 0) {
                    context.deadline = deadline(&asked);
                    effects.push(Effect::Deadline { context: context.no, deadline: context.deadline });
                }
                effects.push(Effect::Reply(id, Ok(Reply::Done)));
            }
            Verb::Pin { id: item, text } => self.pin(&asked, item, text, effects),
            Verb::Unpin { number } => self.unpin(&asked, number, effects),
            Verb::Rewind { turns } => self.rewind(&asked, turns, effects),
            Verb::Unrewind => self.unrewind(&asked, effects),
            Verb::Materialise(session) => match &self.context {
                Some(context) if [context.base_session, context.saved_session].contains(&Some(session)) => {
                    self.busy = Some(Busy::Materialising { request: id, session });
                    effects.push(Effect::Materialise {
                        context: context.no,
                        session,
                        messages: context.messages.clone(),
                        working_set: Box::new(context.working_set.clone()),
                    });
                }
                _ => effects.push(Effect::Reply(id, Ok(Reply::Materialised))),
            },
            Verb::Hold => {
                self.busy = Some(Busy::Held);
                effects.push(Effect::Reply(id, Ok(Reply::Held)));
            }
        }
    }

    /// Saves without being asked for a description.
    fn put(&mut self, asked: &Asked, trigger: Trigger, then: Then, effects: &mut Vec<Effect>) {
        self.write(asked, trigger, then, None, Vec::new(), effects);
    }

    fn write(
        &mut self,
        asked: &Asked,
        trigger: Trigger,
        then: Then,
        description: Option<String>,
        tags: Vec<String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(context) = &self.context else { return };
        let ends = !matches!(then, Then::Answer | Then::PutAway { end: false });
        self.busy = Some(Busy::Writing { request: asked.id, then });
        effects.push(Effect::Write(Box::new(Draft {
            facts: asked.facts.clone(),
            context: context.no,
            ends,
            trigger,
            description,
            tags,
            now: asked.now,
            started_at: context.started_at,
            parent: context.parent,
            messages: context.messages.clone(),
            totals: context.totals,
            working_set: context.working_set.clone(),
        })));
    }

    /// Puts the context away that is due then.
    fn idle(&mut self, asked: &Asked, due: Ticks, effects: &mut Vec<Effect>) {
        let timeout = asked.facts.idle_timeout.unwrap_or_default();
        match &self.context {
            // A message that came in that instant has moved the deadline: the timer lost the race.
            Some(context) if context.deadline.is_some_and(|deadline| deadline.due == due) => {
                if context.unsaved() > 0 {
                    self.put(asked, Trigger::IdleTimeout, Then::Idle { timeout }, effects);
                } else {
                    let held_by = context.saved_session;
                    let notice = held_by.map(|session| Effect::IdleNotice { session, written: None, timeout });
                    self.end(asked.id, Reply::PutAway(None), notice, effects);
                }
            }
            _ => effects.push(Effect::Reply(asked.id, Ok(Reply::PutAway(None)))),
        }
    }

    /// Ends the context, if there is one; then the notice and the reply.
    pub(super) fn end(&mut self, request: RequestId, reply: Reply, notice: Option<Effect>, effects: &mut Vec<Effect>) {
        match &self.context {
            Some(context) => {
                effects.push(Effect::End(context.no));
                self.busy = Some(Busy::Ending { request, reply, notice });
            }
            None => effects.push(Effect::Reply(request, Ok(reply))),
        }
    }

    pub(super) fn replace(
        &mut self,
        request: RequestId,
        begin: Beginning,
        restore: Box<Restore>,
        saved_first: Option<Box<Session>>,
        effects: &mut Vec<Effect>,
    ) {
        let Restore { session, session_id, messages, mut working_set, .. } = *restore;
        let totals = Totals::of(&messages);
        // Pins without a conversation are in no session yet: they come along.
        if let Some(context) = self.context.as_ref().filter(|context| context.totals.messages == 0) {
            working_set.pinned_facts.extend(context.working_set.pinned_facts.iter().cloned());
        }
        effects.push(Effect::Replace {
            old: self.context.as_ref().map(|context| context.no),
            new: Box::new(begin.clone()),
            session,
            totals,
            working_set: Box::new(working_set.clone()),
        });
        let context = Context {
            messages,
            totals,
            saved: totals.messages,
            saved_session: Some(session),
            base_session: Some(session),
            working_set,
            ..begun(&begin)
        };
        self.busy = Some(Busy::Replacing { request, context: Box::new(context), session_id, saved_first });
    }

    pub(super) fn forget(&mut self) {
        *self = Self { busy: mem::take(&mut self.busy), waiting: mem::take(&mut self.waiting), ..Self::default() };
    }
}

/// When a context that saw this is put away.
pub(super) fn deadline(asked: &Asked) -> Option<Deadline> {
    let timeout = asked.facts.idle_timeout?;
    Some(Deadline { due: asked.ticks.after(timeout), at: asked.now.checked_add(timeout).ok()? })
}

pub(super) fn begun(begin: &Beginning) -> Context {
    Context {
        no: begin.context,
        started_at: begin.started_at,
        last_activity_at: begin.started_at,
        deadline: begin.deadline,
        parent: begin.parent,
        messages: Vec::new(),
        totals: Totals::default(),
        saved: 0,
        saved_session: None,
        base_session: None,
        working_set: WorkingSet::default(),
        rewound: Vec::new(),
    }
}

pub(super) fn nothing_there(name: &str) -> Failure {
    Failure::new(ErrorKind::NothingToSave, format!("the context of {name} is empty"))
        .hint("`chorusctl context append` or `context restore` fills it")
}
