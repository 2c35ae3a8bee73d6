//! Exclusive operations, which save, clear or replace the context: one at a time, with no append pending. Part of the
//! state machine.

use std::sync::Arc;

use chorus_base::Ticks;
use chorus_proto::methods::context::ClearResult;
use chorus_proto::{Session, Trigger, WorkingSet};
use chorus_session::stored_message::Totals;
use uuid::Uuid;

use super::context::{Context, context_from_head};
use super::effect::{ContextHead, Effect, SessionDraft};
use super::event::{AgentCommand, CommandOutcome, ContextDraft, Request, RequestId, RequestMeta, Restore};
use super::state::{AfterSave, ExclusiveOp, Replacement, State, deadline_of_request, empty_context_error};
use super::{continuation, recall};

impl State {
    /// Starts an exclusive request. No append is pending.
    pub(super) fn start_exclusive(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Request { meta: asked, command: verb } = request;
        let id = asked.id;
        // A context whose messages could not be loaded can only be cleared or replaced.
        let can_do_without = match &verb {
            AgentCommand::Clear { save } => !save,
            AgentCommand::Restore(restore) => restore.discard,
            AgentCommand::Hold { .. } | AgentCommand::CheckReplaceable => true,
            _ => false,
        };
        if let Some(failure) = self.load_error.as_ref().filter(|_| !can_do_without) {
            effects.push(Effect::Reply(id, Err(failure.clone())));
            return;
        }
        let discarded = self.context.as_ref().map_or(0, |context| context.totals.messages);
        let unsaved = self.context.as_ref().is_some_and(Context::has_unsaved_changes);
        let opened = self.context.as_ref().is_some_and(Context::has_only_opening_message);
        match verb {
            AgentCommand::Append { .. }
            | AgentCommand::Send(_)
            | AgentCommand::Cancel(_)
            | AgentCommand::EndTurns
            | AgentCommand::EndTurnWithoutStore => {}
            AgentCommand::Wake
            | AgentCommand::ReadPage { .. }
            | AgentCommand::Window
            | AgentCommand::Draft
            | AgentCommand::Evict
            | AgentCommand::CancelQueued(_) => {}
            AgentCommand::CheckReplaceable => effects.push(Effect::Reply(id, Ok(CommandOutcome::Done))),
            AgentCommand::Save { .. } if discarded == 0 => {
                effects.push(Effect::Reply(id, Err(empty_context_error(&asked))));
            }
            AgentCommand::Save { description, tags, clear } => {
                let then = if clear { AfterSave::Clear } else { AfterSave::Reply };
                self.start_save(&asked, Trigger::ManualSave, then, description, tags, effects);
            }
            AgentCommand::Clear { save: true } if discarded > 0 && (unsaved || !opened) => {
                self.save_automatically(&asked, Trigger::ContextClear, AfterSave::ClearWith { discarded }, effects);
            }
            AgentCommand::Clear { .. } => {
                let pins = self.context.as_ref().map_or(0, Context::pin_count);
                self.end_context(
                    id,
                    CommandOutcome::Cleared(Box::new(ClearResult { discarded, pins, saved: None })),
                    None,
                    effects,
                );
            }
            AgentCommand::Restore(restore) => {
                let begin = new_head(&asked, restore.session);
                if unsaved && !restore.discard {
                    self.save_automatically(
                        &asked,
                        Trigger::Restore,
                        AfterSave::Restore(Box::new((begin, restore))),
                        effects,
                    );
                } else {
                    self.replace_with_session(id, begin, restore, None, effects);
                }
            }
            AgentCommand::SaveForCompaction if discarded == 0 => {
                effects.push(Effect::Reply(id, Err(empty_context_error(&asked))));
            }
            AgentCommand::SaveForCompaction if opened => {
                effects.push(Effect::Reply(id, Err(continuation::nothing_to_compact_error(&asked.settings.name))));
            }
            AgentCommand::SaveForCompaction => {
                self.save_automatically(&asked, Trigger::Compact, AfterSave::Compact, effects)
            }
            AgentCommand::Resume(resume) => self.resume(&asked, resume, effects),
            AgentCommand::Uncompact => self.uncompact(&asked, effects),
            AgentCommand::UndoContinuation(undo) => self.undo_continuation(&asked, *undo, effects),
            AgentCommand::ApplyExtraction(written) => self.apply_extraction(&asked, *written, effects),
            AgentCommand::SaveIfUnsaved { trigger, end } if unsaved => {
                self.save_automatically(&asked, trigger, AfterSave::ReplySavedIfUnsaved { end }, effects)
            }
            AgentCommand::SaveIfUnsaved { end: true, .. } => {
                self.end_context(id, CommandOutcome::SavedIfUnsaved(None), None, effects)
            }
            AgentCommand::SaveIfUnsaved { .. } => {
                effects.push(Effect::Reply(id, Ok(CommandOutcome::SavedIfUnsaved(None))))
            }
            AgentCommand::Expire { due } => self.expire(&asked, due, effects),
            AgentCommand::UpdateIdleTimeout => {
                if let Some(context) = self.context.as_mut().filter(|context| context.totals.messages > 0) {
                    context.deadline = deadline_of_request(&asked);
                    effects.push(Effect::SetDeadline { context: context.number, deadline: context.deadline });
                }
                effects.push(Effect::Reply(id, Ok(CommandOutcome::Done)));
            }
            AgentCommand::EditNotes(edit) => self.edit_notes(&asked, *edit, effects),
            AgentCommand::Rewind { turns } => self.rewind(&asked, turns, effects),
            AgentCommand::Unrewind => self.unrewind(&asked, effects),
            AgentCommand::Materialise(session) => match &self.context {
                Some(context) if [context.base_session, context.saved_session].contains(&Some(session)) => {
                    self.exclusive = Some(ExclusiveOp::Materialising { request: id, session });
                    effects.push(Effect::Materialise { session, context: Box::new(context.clone()) });
                }
                _ => effects.push(Effect::Reply(id, Ok(CommandOutcome::Materialised))),
            },
            AgentCommand::Hold { .. } => {
                self.exclusive = Some(ExclusiveOp::Held);
                effects.push(Effect::Reply(id, Ok(CommandOutcome::Held)));
            }
        }
    }

    /// Saves the context without a description or tags from the user.
    pub(super) fn save_automatically(
        &mut self,
        asked: &RequestMeta,
        trigger: Trigger,
        then: AfterSave,
        effects: &mut Vec<Effect>,
    ) {
        self.start_save(asked, trigger, then, None, Vec::new(), effects);
    }

    /// Writes the context as a session; `then` says what follows.
    pub(super) fn start_save(
        &mut self,
        asked: &RequestMeta,
        trigger: Trigger,
        then: AfterSave,
        description: Option<String>,
        tags: Vec<String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(context) = &self.context else { return };
        let ends =
            !matches!(then, AfterSave::Reply | AfterSave::Compact | AfterSave::ReplySavedIfUnsaved { end: false });
        self.exclusive = Some(ExclusiveOp::Writing { request: asked.id, after: then });
        let draft = SessionDraft { ends_context: ends, description, tags, ..draft_session(context, asked, trigger) };
        effects.push(Effect::WriteSession(Box::new(draft)));
    }

    /// Returns the context as a save would write it; `None` if it has no messages.
    pub(super) fn draft_context(&self, asked: &RequestMeta) -> Option<ContextDraft> {
        let context = self.context.as_ref().filter(|context| context.totals.messages > 0)?;
        let draft = draft_session(context, asked, Trigger::ManualSave);
        let session = SessionDraft { now: context.last_activity_at, ..draft };
        Some(ContextDraft { session, unsaved: context.has_unsaved_changes() })
    }

    /// Handles an idle timer: saves and clears the context if its deadline is still `due`.
    fn expire(&mut self, asked: &RequestMeta, due: Ticks, effects: &mut Vec<Effect>) {
        let timeout = asked.settings.idle_timeout.unwrap_or_default();
        match &self.context {
            // The timer is set again when the turn ends.
            _ if self.turn.is_some() => effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::TurnRunning))),
            // If a message just came in, the deadline has moved and this timer is out of date.
            Some(context) if context.deadline.is_some_and(|deadline| deadline.due == due) => {
                if context.has_unsaved_changes() {
                    self.save_automatically(asked, Trigger::IdleTimeout, AfterSave::Expire { timeout }, effects);
                } else {
                    let held_by = context.saved_session;
                    let notice = held_by.map(|session| Effect::PostIdleNotice { session, written: None, timeout });
                    self.end_context(asked.id, CommandOutcome::SavedIfUnsaved(None), notice, effects);
                }
            }
            _ => effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::SavedIfUnsaved(None)))),
        }
    }

    /// Ends the context if there is one, then posts the notice and replies.
    pub(super) fn end_context(
        &mut self,
        request: RequestId,
        reply: CommandOutcome,
        notice: Option<Effect>,
        effects: &mut Vec<Effect>,
    ) {
        match &self.context {
            Some(context) => {
                effects.push(Effect::EndContext(context.number));
                self.exclusive = Some(ExclusiveOp::Ending { request, reply, notice });
            }
            None => effects.push(Effect::Reply(request, Ok(reply))),
        }
    }

    /// Adds the notes of a context without messages to the working set of the context that takes its place: no session
    /// has them yet. Returns whether there are any besides pinned facts.
    pub(super) fn take_notes_along(&self, set: &mut WorkingSet) -> bool {
        let Some(context) = self.context.as_ref().filter(|context| context.totals.messages == 0) else { return false };
        let notes = &context.working_set;
        set.pinned_facts.extend(notes.pinned_facts.iter().cloned());
        let before = set.decisions.len() + set.open_tasks.len() + set.files_touched.len();
        set.decisions.extend(notes.decisions.iter().cloned());
        set.open_tasks.extend(notes.open_tasks.iter().cloned());
        set.files_touched.extend(notes.files_touched.iter().cloned());
        set.decisions.len() + set.open_tasks.len() + set.files_touched.len() > before
    }

    /// Replaces the context by one that refers to a session.
    pub(super) fn replace_with_session(
        &mut self,
        request: RequestId,
        begin: ContextHead,
        restore: Box<Restore>,
        saved_first: Option<Box<Session>>,
        effects: &mut Vec<Effect>,
    ) {
        let Restore { session, session_id, mut messages, appended: added, mut working_set, restoration, .. } = *restore;
        let (held, held_pins) = (Totals::count(&messages), working_set.pinned_facts.clone());
        // The session says which messages it were, but not their texts.
        working_set.recalled = None;
        let has_unsaved_notes = self.take_notes_along(&mut working_set);
        effects.push(Effect::ReplaceWithSession {
            old: self.context.as_ref().map(|context| context.number),
            new: Box::new(begin.clone()),
            session,
            totals: held,
            appended: added.clone(),
            working_set: Box::new(working_set.clone()),
            restoration,
        });
        // Record 0 is the reference to the session, record 1 the working set, then the tokens that resuming cost, if
        // any.
        let first = if restoration.is_zero() { 2 } else { 3 };
        let next_record = u32::try_from(added.len()).unwrap_or(u32::MAX).saturating_add(first);
        let mut totals = Totals::count(&added);
        totals.merge(held);
        messages.extend(added);
        let context = Context {
            totals,
            messages: Arc::new(messages),
            saved: held.messages,
            saved_session: Some(session),
            saved_pins: held_pins,
            has_unsaved_notes,
            base_session: Some(session),
            working_set,
            restoration,
            ..context_from_head(&begin)
        };
        let by = Replacement { restored: Some((session, session_id)), next_record, receipt: None };
        self.exclusive =
            Some(ExclusiveOp::Replacing { request, context: Box::new(context), replacement: by, saved_first });
    }
}

/// Returns the head of a new context that a user asked for and that comes from `session`.
pub(super) fn new_head(asked: &RequestMeta, session: Uuid) -> ContextHead {
    ContextHead {
        context: asked.new_context,
        agent: asked.settings.id,
        started_at: asked.now,
        deadline: deadline_of_request(asked),
        parent: Some(session),
    }
}

/// Returns the context as a session without a description or tags.
fn draft_session(context: &Context, asked: &RequestMeta, trigger: Trigger) -> SessionDraft {
    SessionDraft {
        settings: asked.settings.clone(),
        conversation: None,
        context: context.number,
        ends_context: false,
        trigger,
        description: None,
        tags: Vec::new(),
        now: asked.now,
        started_at: context.started_at,
        parent: context.parent,
        saved_session: context.saved_session,
        messages: context.messages.clone(),
        totals: context.totals,
        working_set: recall::without_texts(&context.working_set),
        restoration: context.restoration,
    }
}
