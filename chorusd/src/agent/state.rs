//! The agent as a pure function: an event in, a list of effects out. No I/O, no clock, no runtime.
//!
//! Appends flow: many may be under way, and each is taken into the context when the journal has it. Everything that
//! saves, clears or replaces the context is exclusive: it waits for the appends before it, and keeps the requests
//! after it waiting.

use std::collections::VecDeque;
use std::mem;

use chorus_proto::methods::context::ClearResult;
use chorus_proto::{ErrorKind, Session, Trigger};
use jiff::Timestamp;
use uuid::Uuid;

use super::Facts;
use super::context::{Context, Pick, page};
use super::effect::{Append, Beginning, Draft, Effect};
use super::event::{Event, Journalled, Reply, Request, RequestId, Restore, Verb};
use crate::failure::{Failure, Result};
use crate::message::{Stored, Totals};

/// Appends that may be under way at once.
const MAX_PENDING: usize = 1024;

/// An agent's live state.
#[derive(Debug, Default)]
pub struct State {
    context: Option<Context>,
    /// The context that the first appends will begin, until one of them is durable.
    beginning: Option<Beginning>,
    /// Number of the next record.
    next_record: u32,
    pending: VecDeque<Pending>,
    /// An exclusive request that waits for the appends before it.
    waiting: Option<Request>,
    busy: Option<Busy>,
    /// Why the context could not be read back, where it could not.
    broken: Option<Failure>,
}

#[derive(Debug)]
struct Pending {
    request: RequestId,
    begin: Beginning,
    messages: Vec<Stored>,
    at: Timestamp,
    deadline: Option<Timestamp>,
}

/// An exclusive request under way.
#[derive(Debug)]
enum Busy {
    Writing { request: RequestId, then: Then },
    Ending { request: RequestId, reply: Reply },
    Replacing { request: RequestId, context: Box<Context>, saved_first: Option<Box<Session>> },
    Materialising { request: RequestId, session: Uuid },
    Held,
}

/// What follows a save.
#[derive(Debug)]
enum Then {
    Answer,
    Clear,
    ClearWith { discarded: u64 },
    Restore(Box<(Beginning, Restore)>),
    PutAway { end: bool },
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
        self.context.is_none() && self.pending.is_empty() && self.busy.is_none() && self.waiting.is_none()
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
        match request.verb {
            Verb::Append { messages, key } => {
                if let Some(failure) = &self.broken {
                    effects.push(Effect::Reply(request.id, Err(failure.clone())));
                    return;
                }
                let deadline = deadline(&request.facts, request.now);
                let begin = self.beginning(&request.facts, request.now, request.fresh);
                let first = self.next_record;
                self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
                let copy = messages.clone();
                self.pending.push_back(Pending {
                    request: request.id,
                    begin: begin.clone(),
                    messages,
                    at: request.now,
                    deadline,
                });
                effects.push(Effect::Append(Box::new(Append {
                    begin,
                    first,
                    messages: copy,
                    at: request.now,
                    deadline,
                    key,
                })));
            }
            Verb::Show { pick, most } => effects.push(Effect::Reply(request.id, self.show(pick, most))),
            _ => self.waiting = Some(request),
        }
    }

    /// The context that messages go into: the live one, or one that is about to begin.
    fn beginning(&mut self, facts: &Facts, now: Timestamp, fresh: crate::message::ContextNo) -> Beginning {
        if let Some(context) = &self.context {
            return Beginning {
                context: context.no,
                agent: facts.id,
                started_at: context.started_at,
                idle_deadline_at: context.idle_deadline_at,
                parent: context.parent,
            };
        }
        self.beginning
            .get_or_insert_with(|| {
                self.next_record = 0;
                Beginning {
                    context: fresh,
                    agent: facts.id,
                    started_at: now,
                    idle_deadline_at: deadline(facts, now),
                    parent: None,
                }
            })
            .clone()
    }

    fn show(&self, pick: Pick, most: usize) -> Result<Reply> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let Some(context) = &self.context else {
            return Ok(Reply::Page { messages: Vec::new(), info: None, next: None });
        };
        let (messages, next) = page(&context.messages, pick, most);
        Ok(Reply::Page { messages, info: Some(context.info()), next })
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
        let Request { id, facts, now, fresh, verb } = request;
        let needs_messages = matches!(
            &verb,
            Verb::Save { .. } | Verb::Clear { save: true } | Verb::PutAway { .. } | Verb::Materialise(_)
        ) || matches!(&verb, Verb::Restore(restore) if !restore.discard);
        if needs_messages && let Some(failure) = &self.broken {
            effects.push(Effect::Reply(id, Err(failure.clone())));
            return;
        }
        let live = self.context.as_ref().filter(|context| context.totals.messages > 0);
        let discarded = live.map_or(0, |context| context.totals.messages);
        let unsaved = live.is_some_and(|context| context.unsaved() > 0);
        let mut write = |busy: &mut Option<Busy>, trigger, description, tags, then| {
            if let Some(context) = &self.context {
                *busy = Some(Busy::Writing { request: id, then });
                effects.push(Effect::Write(Box::new(draft(context, facts.clone(), trigger, description, tags, now))));
            }
        };
        match verb {
            Verb::Append { .. } | Verb::Show { .. } => {}
            Verb::Save { .. } if live.is_none() => {
                effects.push(Effect::Reply(id, Err(nothing_to_save(&facts.name))));
            }
            Verb::Save { description, tags, clear } => {
                let then = if clear { Then::Clear } else { Then::Answer };
                write(&mut self.busy, Trigger::ManualSave, description, tags, then);
            }
            Verb::Clear { save: true } if live.is_some() => {
                write(&mut self.busy, Trigger::ContextClear, None, Vec::new(), Then::ClearWith { discarded });
            }
            Verb::Clear { .. } => {
                self.end(id, Reply::Cleared(Box::new(ClearResult { discarded, saved: None })), effects)
            }
            Verb::Restore(restore) => {
                let begin = Beginning {
                    context: fresh,
                    agent: facts.id,
                    started_at: now,
                    idle_deadline_at: deadline(&facts, now),
                    parent: Some(restore.session),
                };
                if unsaved && !restore.discard {
                    let then = Then::Restore(Box::new((begin, restore)));
                    write(&mut self.busy, Trigger::Restore, None, Vec::new(), then);
                } else {
                    self.replace(id, begin, restore, None, effects);
                }
            }
            Verb::PutAway { trigger, end } if unsaved => {
                write(&mut self.busy, trigger, None, Vec::new(), Then::PutAway { end });
            }
            Verb::PutAway { end: true, .. } => self.end(id, Reply::PutAway(None), effects),
            Verb::PutAway { .. } => effects.push(Effect::Reply(id, Ok(Reply::PutAway(None)))),
            Verb::Materialise(session) => match &self.context {
                Some(context) if [context.base_session, context.saved_session].contains(&Some(session)) => {
                    self.busy = Some(Busy::Materialising { request: id, session });
                    let messages = context.messages.clone();
                    effects.push(Effect::Materialise { context: context.no, session, messages });
                }
                _ => effects.push(Effect::Reply(id, Ok(Reply::Materialised))),
            },
            Verb::Hold => {
                self.busy = Some(Busy::Held);
                effects.push(Effect::Reply(id, Ok(Reply::Held)));
            }
        }
    }

    /// Ends the context, if there is one, and then replies.
    fn end(&mut self, request: RequestId, reply: Reply, effects: &mut Vec<Effect>) {
        match &self.context {
            Some(context) => {
                effects.push(Effect::End(context.no));
                self.busy = Some(Busy::Ending { request, reply });
            }
            None => effects.push(Effect::Reply(request, Ok(reply))),
        }
    }

    fn replace(
        &mut self,
        request: RequestId,
        begin: Beginning,
        restore: Restore,
        saved_first: Option<Box<Session>>,
        effects: &mut Vec<Effect>,
    ) {
        let totals = Totals::of(&restore.messages);
        effects.push(Effect::Replace {
            old: self.context.as_ref().map(|context| context.no),
            new: Box::new(begin.clone()),
            session: restore.session,
            totals,
        });
        let context = Context {
            messages: restore.messages,
            totals,
            saved: totals.messages,
            saved_session: Some(restore.session),
            base_session: Some(restore.session),
            ..begun(&begin)
        };
        self.busy = Some(Busy::Replacing { request, context: Box::new(context), saved_first });
    }

    fn written(&mut self, result: Result<Box<Session>>, effects: &mut Vec<Effect>) {
        let Some(Busy::Writing { request, then }) = self.busy.take() else { return };
        let session = match result {
            Ok(session) => session,
            Err(failure) => {
                effects.push(Effect::Reply(request, Err(failure)));
                return;
            }
        };
        if let Some(context) = &mut self.context {
            context.saved = session.header.message_count;
            context.saved_session = Some(session.header.id);
        }
        match then {
            Then::Answer => effects.push(Effect::Reply(request, Ok(Reply::Saved { session, cleared: false }))),
            Then::Clear => self.end(request, Reply::Saved { session, cleared: true }, effects),
            Then::ClearWith { discarded } => {
                self.end(request, Reply::Cleared(Box::new(ClearResult { discarded, saved: Some(*session) })), effects);
            }
            Then::Restore(plan) => {
                let (begin, restore) = *plan;
                self.replace(request, begin, restore, Some(session), effects);
            }
            Then::PutAway { end: true } => self.end(request, Reply::PutAway(Some(session)), effects),
            Then::PutAway { end: false } => {
                effects.push(Effect::Reply(request, Ok(Reply::PutAway(Some(session)))));
            }
        }
    }

    fn ended(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Ending { request, reply }) = self.busy.take() else { return };
        if result.is_ok() {
            self.forget();
        }
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }

    fn replaced(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Replacing { request, context, saved_first }) = self.busy.take() else { return };
        let messages = context.totals.messages;
        if result.is_ok() {
            self.forget();
            self.context = Some(*context);
            // The reference to the session is record 0.
            self.next_record = 1;
        }
        effects.push(Effect::Reply(request, result.map(|()| Reply::Restored { messages, saved_first })));
    }

    fn materialised(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Materialising { request, session }) = self.busy.take() else { return };
        if result.is_ok()
            && let Some(context) = &mut self.context
        {
            context.base_session = None;
            if context.saved_session == Some(session) {
                (context.saved_session, context.saved) = (None, 0);
            }
            self.next_record = u32::try_from(context.messages.len()).unwrap_or(u32::MAX);
        }
        effects.push(Effect::Reply(request, result.map(|()| Reply::Materialised)));
    }

    fn forget(&mut self) {
        *self = Self { busy: mem::take(&mut self.busy), waiting: mem::take(&mut self.waiting), ..Self::default() };
    }
}

/// When a context that saw something at `now` is put away.
fn deadline(facts: &Facts, now: Timestamp) -> Option<Timestamp> {
    facts.idle_timeout.and_then(|timeout| now.checked_add(timeout).ok())
}

fn begun(begin: &Beginning) -> Context {
    Context {
        no: begin.context,
        started_at: begin.started_at,
        last_activity_at: begin.started_at,
        idle_deadline_at: begin.idle_deadline_at,
        parent: begin.parent,
        messages: Vec::new(),
        totals: Totals::default(),
        saved: 0,
        saved_session: None,
        base_session: None,
    }
}

fn draft(
    context: &Context,
    facts: std::sync::Arc<Facts>,
    trigger: Trigger,
    description: Option<String>,
    tags: Vec<String>,
    now: Timestamp,
) -> Draft {
    Draft {
        facts,
        context: context.no,
        trigger,
        description,
        tags,
        now,
        started_at: context.started_at,
        parent: context.parent,
        messages: context.messages.clone(),
        totals: context.totals,
    }
}

fn nothing_to_save(name: &str) -> Failure {
    Failure::new(ErrorKind::NothingToSave, format!("the context of {name} is empty"))
        .hint("`chorusctl context append` or `context restore` fills it")
}
