//! What saves, clears or replaces the context: one at a time, and no append beside it. Part of the state machine.

use std::sync::Arc;

use chorus_proto::methods::context::ClearResult;
use chorus_proto::{Session, Trigger};
use uuid::Uuid;

use super::context::Context;
use super::effect::{Beginning, Draft, Effect};
use super::event::{Asked, Reply, Request, RequestId, Restore, Verb};
use super::links;
use super::state::{Busy, By, State, Then, begun, deadline, nothing_there};
use crate::clock::Ticks;
use crate::message::Totals;

impl State {
    /// Begins an exclusive request: no append is under way.
    pub(super) fn exclusive(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Request { asked, verb } = request;
        let id = asked.id;
        // Without its messages a context can be cleared or replaced, and nothing else.
        let can_do_without = match &verb {
            Verb::Clear { save } => !save,
            Verb::Restore(restore) => restore.discard,
            Verb::Hold { .. } | Verb::IsFree => true,
            _ => false,
        };
        if let Some(failure) = self.broken.as_ref().filter(|_| !can_do_without) {
            effects.push(Effect::Reply(id, Err(failure.clone())));
            return;
        }
        let discarded = self.context.as_ref().map_or(0, |context| context.totals.messages);
        let unsaved = self.context.as_ref().is_some_and(Context::is_unsaved);
        let opened = self.context.as_ref().is_some_and(Context::is_only_opened);
        match verb {
            Verb::Append { .. } | Verb::Send(_) | Verb::Cancel(_) | Verb::EndTurns => {}
            Verb::Wake | Verb::Show { .. } | Verb::Window | Verb::Rest | Verb::TakeBack(_) => {}
            Verb::IsFree => effects.push(Effect::Reply(id, Ok(Reply::Done))),
            Verb::Save { .. } if discarded == 0 => {
                effects.push(Effect::Reply(id, Err(nothing_there(&asked.facts.name))));
            }
            Verb::Save { description, tags, clear } => {
                let then = if clear { Then::Clear } else { Then::Answer };
                self.write(&asked, Trigger::ManualSave, then, description, tags, effects);
            }
            Verb::Clear { save: true } if discarded > 0 && (unsaved || !opened) => {
                self.put(&asked, Trigger::ContextClear, Then::ClearWith { discarded }, effects);
            }
            Verb::Clear { .. } => {
                let pins = self.context.as_ref().map_or(0, Context::pins);
                self.end(id, Reply::Cleared(Box::new(ClearResult { discarded, pins, saved: None })), None, effects);
            }
            Verb::Restore(restore) => {
                let begin = anew(&asked, restore.session);
                if unsaved && !restore.discard {
                    self.put(&asked, Trigger::Restore, Then::Restore(Box::new((begin, restore))), effects);
                } else {
                    self.replace(id, begin, restore, None, effects);
                }
            }
            Verb::SaveToCompact if discarded == 0 => {
                effects.push(Effect::Reply(id, Err(nothing_there(&asked.facts.name))));
            }
            Verb::SaveToCompact if opened => {
                effects.push(Effect::Reply(id, Err(links::nothing_said(&asked.facts.name))));
            }
            Verb::SaveToCompact => self.put(&asked, Trigger::Compact, Then::Compact, effects),
            Verb::Resume(resume) => self.resume(&asked, resume, effects),
            Verb::Uncompact => self.uncompact(&asked, effects),
            Verb::Note(written) => self.note(&asked, *written, effects),
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
                    effects.push(Effect::Materialise { session, context: Box::new(context.clone()) });
                }
                _ => effects.push(Effect::Reply(id, Ok(Reply::Materialised))),
            },
            Verb::Hold { .. } => {
                self.busy = Some(Busy::Held);
                effects.push(Effect::Reply(id, Ok(Reply::Held)));
            }
        }
    }

    /// Saves without being asked for a description.
    pub(super) fn put(&mut self, asked: &Asked, trigger: Trigger, then: Then, effects: &mut Vec<Effect>) {
        self.write(asked, trigger, then, None, Vec::new(), effects);
    }

    pub(super) fn write(
        &mut self,
        asked: &Asked,
        trigger: Trigger,
        then: Then,
        description: Option<String>,
        tags: Vec<String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(context) = &self.context else { return };
        let ends = !matches!(then, Then::Answer | Then::Compact | Then::PutAway { end: false });
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
            restoration: context.restoration,
        })));
    }

    /// Puts the context away that is due then.
    fn idle(&mut self, asked: &Asked, due: Ticks, effects: &mut Vec<Effect>) {
        let timeout = asked.facts.idle_timeout.unwrap_or_default();
        match &self.context {
            // The end of a turn sets the timer anew.
            _ if self.turn.is_some() => effects.push(Effect::Reply(asked.id, Ok(Reply::InTurn))),
            // A message that came in that instant has moved the deadline: the timer lost the race.
            Some(context) if context.deadline.is_some_and(|deadline| deadline.due == due) => {
                if context.is_unsaved() {
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
        let Restore { session, session_id, mut messages, added, mut working_set, restoration, .. } = *restore;
        let (held, held_pins) = (Totals::of(&messages), working_set.pinned_facts.clone());
        // Pins without a conversation are in no session yet: they come along.
        if let Some(context) = self.context.as_ref().filter(|context| context.totals.messages == 0) {
            working_set.pinned_facts.extend(context.working_set.pinned_facts.iter().cloned());
        }
        effects.push(Effect::Replace {
            old: self.context.as_ref().map(|context| context.no),
            new: Box::new(begin.clone()),
            session,
            totals: held,
            added: added.clone(),
            working_set: Box::new(working_set.clone()),
            restoration,
        });
        // Record 0 is the reference to the session, record 1 the working set; what resuming cost follows where it did.
        let first = if restoration.is_zero() { 2 } else { 3 };
        let next_record = u32::try_from(added.len()).unwrap_or(u32::MAX).saturating_add(first);
        messages.extend(added);
        let context = Context {
            totals: Totals::of(&messages),
            messages: Arc::new(messages),
            saved: held.messages,
            saved_session: Some(session),
            held_pins,
            base_session: Some(session),
            working_set,
            restoration,
            ..begun(&begin)
        };
        let by = By { restored: Some((session, session_id)), next_record, receipt: None };
        self.busy = Some(Busy::Replacing { request, context: Box::new(context), by, saved_first });
    }
}

/// A context that begins because somebody asked, and comes from `session`.
pub(super) fn anew(asked: &Asked, session: Uuid) -> Beginning {
    Beginning {
        context: asked.fresh,
        agent: asked.facts.id,
        started_at: asked.now,
        deadline: deadline(asked),
        parent: Some(session),
    }
}
