//! Continuations of sessions, and compaction in place. Part of the state machine.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::pluralize::pluralize;
use chorus_proto::{ErrorKind, EventType, ItemSource, Receipt, Session, Trigger};
use chorus_session::notes::apply_changes;
use chorus_session::stored_message::Totals;
use serde_json::{Value, json};
use uuid::Uuid;

use super::compaction::{Compaction, CompactionMode, DerivedState, MIN_KEPT_MESSAGES, ManualCompaction};
use super::context::{Context, context_from_head};
use super::effect::{ContextEdit, ContextHead, Effect};
use super::event::{
    BegunByCompaction, CommandOutcome, CompactedContext, CompactionTarget, RequestId, RequestMeta, Resume,
    UndoContinuation,
};
use super::exclusive_ops::new_head;
use super::state::{AfterSave, AppendOwner, ExclusiveOp, PendingAppend, Replacement, State};
use super::turn::EventTime;

impl State {
    /// Starts a fresh context that continues from a session; saves the current one first if needed.
    pub(super) fn resume(&mut self, asked: &RequestMeta, resume: Box<Resume>, effects: &mut Vec<Effect>) {
        let begin = new_head(asked, resume.session);
        let context = self.context.as_ref();
        if let Some(compacts) = &resume.compaction {
            let as_saved = |context: &Context| {
                context.saved_session == Some(resume.session)
                    && context.totals.messages == compacts.messages
                    && !context.has_unsaved_notes
            };
            let same = context.filter(|context| context.number == compacts.context);
            if same.is_some_and(|context| as_saved(context) && context.unsaved() == 0) {
                self.replace_with_messages(asked.id, begin, resume, None, effects);
            } else {
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::ContextMovedOn { replaced: same.is_none() })));
            }
        } else if context.is_some_and(Context::has_unsaved_changes) {
            self.save_automatically(asked, Trigger::Resume, AfterSave::Resume(Box::new((begin, resume))), effects);
        } else {
            self.replace_with_messages(asked.id, begin, resume, None, effects);
        }
    }

    /// Replaces the context by a fresh one that has only the opening message.
    pub(super) fn replace_with_messages(
        &mut self,
        request: RequestId,
        begin: ContextHead,
        resume: Box<Resume>,
        saved_first: Option<Box<Session>>,
        effects: &mut Vec<Effect>,
    ) {
        let Resume {
            session,
            session_id,
            mut working_set,
            acknowledgement,
            restoration: cost,
            compaction: mut compacts,
        } = *resume;
        let (held_pins, mut has_unsaved_notes) = (working_set.pinned_facts.clone(), false);
        if let Some(context) = &self.context {
            let pins = &context.working_set.pinned_facts;
            if let Some(CompactionTarget { receipt, .. }) = &mut compacts {
                // Facts may have been pinned or unpinned since the save.
                working_set.pinned_facts.clone_from(pins);
                receipt.pins = pins.iter().map(|fact| fact.text.clone()).collect();
            } else {
                has_unsaved_notes = self.take_notes_along(&mut working_set);
            }
        }
        let messages = vec![acknowledgement];
        let event = match &compacts {
            Some(compacts) => {
                (COMPACTION_EVENT, compaction_event_data(&compacts.receipt, Some((session, &session_id))))
            }
            None => {
                let data = json!({"id": session, "session_id": session_id, "messages": messages.len()});
                (EventType::ContextRestored, data)
            }
        };
        let begun_by_compaction = compacts.as_ref().map(|compacts| {
            let initial = DerivedState::from_working_set(&working_set);
            Box::new(ManualCompaction { initial, receipt: compacts.receipt.clone() })
        });
        effects.push(Effect::ReplaceWithMessages {
            old: self.context.as_ref().map(|context| context.number),
            new: Box::new(begin.clone()),
            messages: messages.clone(),
            working_set: Box::new(working_set.clone()),
            restoration: cost,
            compaction: begun_by_compaction.clone(),
            event,
        });
        // The working set, the cost, the compaction if it is one, and the messages.
        let before = 2 + u32::from(begun_by_compaction.is_some());
        let next_record = u32::try_from(messages.len()).unwrap_or(u32::MAX).saturating_add(before);
        let totals = Totals::count(&messages);
        let messages = Arc::new(messages);
        let context = Context {
            messages,
            totals,
            saved_pins: held_pins,
            has_unsaved_notes,
            begun_by_compaction,
            working_set,
            restoration: cost,
            ..context_from_head(&begin)
        };
        let receipt = compacts.map(|compacts| Box::new(compacts.receipt));
        let by = Replacement { restored: None, next_record, receipt };
        self.exclusive =
            Some(ExclusiveOp::Replacing { request, context: Box::new(context), replacement: by, saved_first });
    }

    /// Brings the messages back into the window that the last compaction removed. If that was a compaction by hand,
    /// replies which session has them; [`State::undo_continuation`] is next then.
    pub(super) fn uncompact(&mut self, asked: &RequestMeta, effects: &mut Vec<Effect>) {
        if let Some(undo) = self.context.as_ref().and_then(continuation_to_undo) {
            effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::BegunByCompaction(undo))));
            return;
        }
        let mut after = self.context.clone();
        let Some((receipt, mut context)) = after.as_mut().and_then(Context::uncompact).zip(after) else {
            let name = &asked.settings.name;
            let failure = Error::new(ErrorKind::Denied, format!("nothing to undo: {name} has no compaction"));
            let hint = match self.context.as_ref().and_then(|context| context.parent) {
                Some(parent) => {
                    format!("restore the earlier session instead: chorusctl --agent {name} restore {parent}")
                }
                None => "no messages were removed from the window by a compaction".to_owned(),
            };
            effects.push(Effect::Reply(asked.id, Err(failure.hint(hint))));
            return;
        };
        context.last_activity_at = asked.now;
        let reply = CommandOutcome::Uncompacted(CompactedContext {
            receipt: Box::new(receipt),
            messages: context.totals.messages,
        });
        let begin = self.head_for_edit(asked);
        self.record_edit(asked, begin, context, ContextEdit::Uncompact, reply, effects);
    }

    /// Undoes the compaction by hand that the context began with: the messages of the saved session are live again, and
    /// what was said since follows them.
    pub(super) fn undo_continuation(&mut self, asked: &RequestMeta, undo: UndoContinuation, effects: &mut Vec<Effect>) {
        let UndoContinuation { context: number, mut restore } = undo;
        let same = self.context.as_ref().filter(|context| {
            let begun = continuation_to_undo(context);
            begun.is_some_and(|undo| undo.context == number && undo.session == restore.session)
        });
        let Some((context, begun)) = same.and_then(|context| Some((context, context.begun_by_compaction.as_ref()?)))
        else {
            effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::ContextMovedOn { replaced: true })));
            return;
        };
        // The first message acknowledges the background, which the messages themselves replace.
        restore.appended = context.messages.get(1..).unwrap_or_default().to_vec();
        let saved = DerivedState::from_working_set(&restore.working_set);
        let current = DerivedState::from_working_set(&context.working_set);
        let edited = saved.clone().with_edits(&begun.initial, &current);
        let has_unsaved_notes = edited != saved;
        edited.apply_to(&mut restore.working_set);
        let held_pins =
            std::mem::replace(&mut restore.working_set.pinned_facts, context.working_set.pinned_facts.clone());
        restore.restoration.input += context.restoration.input;
        restore.restoration.output += context.restoration.output;
        let messages = (restore.messages.len() + restore.appended.len()) as u64;
        let begin = new_head(asked, restore.session);
        self.replace_with_session(asked.id, begin, restore, None, effects);
        if let Some(ExclusiveOp::Replacing { context, .. }) = &mut self.exclusive {
            context.saved_pins = held_pins;
            context.has_unsaved_notes |= has_unsaved_notes;
            // Else the next call would compact the window again at once.
            context.no_auto_compaction_below = messages + MIN_KEPT_MESSAGES as u64;
        }
    }

    /// Records a compaction in the journal, before the model is called.
    pub(super) fn start_compaction(
        &mut self,
        (id, step): (Uuid, u32),
        moment: EventTime,
        compaction: Box<Compaction>,
        effects: &mut Vec<Effect>,
    ) {
        if !self.turn.as_ref().is_some_and(|turn| turn.id == id && turn.is_calling_step(step))
            || self.end_if_interrupted(effects)
        {
            return;
        }
        let calls = self.turn.as_mut().is_some_and(|turn| turn.begin_compaction(step));
        let compaction = self.with_recent_edits(compaction);
        let Some(begin) = self.live_head().filter(|_| calls) else { return };
        let number = self.next_record;
        self.next_record = number.saturating_add(1);
        let context = begin.context;
        self.pending_appends.push_back(PendingAppend {
            owner: AppendOwner::Compaction(compaction.clone()),
            deadline: begin.deadline,
            head: begin,
            messages: Vec::new(),
            at: moment.now,
        });
        effects.push(Effect::RecordCompaction { context, record_number: number, compaction, at: moment.now });
    }

    /// Applies the edits of notes since the compaction was planned.
    fn with_recent_edits(&self, mut compaction: Box<Compaction>) -> Box<Compaction> {
        let Some(context) = self.context.as_ref().filter(|context| !context.changes_since_call.is_empty()) else {
            return compaction;
        };
        let mut set = context.working_set.clone();
        std::mem::take(&mut compaction.derived).apply_to(&mut set);
        apply_changes(&mut set, &context.changes_since_call);
        compaction.derived = DerivedState::from_working_set(&set);
        compaction
    }

    /// Applies a compaction that the journal has recorded.
    pub(super) fn on_compaction_recorded(
        &mut self,
        compaction: Compaction,
        result: Result<()>,
        effects: &mut Vec<Effect>,
    ) {
        if result.is_ok()
            && let Some(context) = &mut self.context
        {
            effects.push(Effect::Broadcast(TurnEvent::Note(receipt_text(&compaction.receipt))));
            context.compact(compaction);
        }
        self.continue_after_compaction(result, effects);
    }
}

/// Returns what undoing the compaction by hand needs that the context began with, if that is the newest compaction.
fn continuation_to_undo(context: &Context) -> Option<BegunByCompaction> {
    let begun = context.begun_by_compaction.as_ref().filter(|_| context.compactions.is_empty())?;
    Some(BegunByCompaction {
        context: context.number,
        session: context.parent?,
        receipt: Box::new(begun.receipt.clone()),
    })
}

/// Returns the error for compacting a continuation that has only its opening message: the next context would know
/// nothing of the earlier sessions.
pub(super) fn nothing_to_compact_error(agent: &str) -> Error {
    Error::new(
        ErrorKind::NothingToSave,
        format!("nothing to compact: no message to {agent} since its conversation was resumed"),
    )
    .hint("compact after the next message")
}

/// Returns the mode for the next call, which takes into account that a compaction may just have been undone.
pub(super) fn effective_compaction_mode(context: Option<&Context>, wish: CompactionMode) -> CompactionMode {
    let held = |context: &Context| context.totals.messages < context.no_auto_compaction_below;
    if wish == CompactionMode::IfLong && context.is_some_and(held) { CompactionMode::Off } else { wish }
}

/// Formats a receipt as one line for the user.
fn receipt_text(receipt: &Receipt) -> String {
    let Receipt { tokens_before, tokens_after, left, source, fallback, offered, done, dropped, condensed, .. } =
        receipt;
    let mut told = format!(
        "compacted {} (~{tokens_before} to ~{tokens_after} tokens); nothing is deleted, undo \
         with `chorusctl context compact --undo`",
        pluralize(*left, "older message")
    );
    match fallback {
        Some(why) if *source == Some(ItemSource::Model) => told.push_str(&format!("; {why}")),
        Some(why) => told.push_str(&format!("; used the built-in summarizer: {why}")),
        None => {}
    }
    if !done.is_empty() {
        told.push_str(&format!("; completed: {}", done.join(" · ")));
    }
    if *dropped > 0 {
        told.push_str(&format!("; dropped {dropped} older items of the working set because of its size limit"));
    }
    if *condensed > 0 {
        told.push_str(&format!(
            "; {condensed} decisions and open tasks are shortened or left out in the window, see them all with \
             `chorusctl notes list`"
        ));
    }
    if !offered.is_empty() {
        told.push_str(&format!("; facts to remember with `chorusctl memory add TEXT`: {}", offered.join(" · ")));
    }
    told
}

/// Returns the data of the event. `from` is the session that a fresh context continues from.
#[must_use]
pub fn compaction_event_data(receipt: &Receipt, from: Option<(Uuid, &str)>) -> Value {
    let mut data = json!(receipt);
    if let (Some(fields), Some((id, session_id))) = (data.as_object_mut(), from) {
        fields.insert("id".to_owned(), json!(id));
        fields.insert("session_id".to_owned(), json!(session_id));
    }
    data
}

/// The type of the event for a compaction.
pub const COMPACTION_EVENT: EventType = EventType::ContextCompacted;
