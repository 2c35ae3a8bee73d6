//! Continuations of sessions, and compaction in place. Part of the state machine.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{ErrorKind, EventType, ItemSource, Receipt, Session, Trigger};
use chorus_session::stored_message::Totals;
use serde_json::{Value, json};
use uuid::Uuid;

use super::compaction::{Compaction, CompactionMode};
use super::context::Context;
use super::effect::{ContextEdit, ContextHead, Effect};
use super::event::{CommandOutcome, CompactedContext, CompactionTarget, RequestId, RequestMeta, Resume};
use super::exclusive_ops::new_head;
use super::state::{AfterSave, AppendOwner, ExclusiveOp, PendingAppend, Replacement, State, context_from_head};
use super::turn::EventTime;

impl State {
    /// Starts a fresh context that continues from a session; saves the current one first if needed.
    pub(super) fn resume(&mut self, asked: &RequestMeta, resume: Box<Resume>, effects: &mut Vec<Effect>) {
        let begin = new_head(asked, resume.session);
        let context = self.context.as_ref();
        if let Some(compacts) = &resume.compaction {
            let as_saved = |context: &Context| {
                context.saved_session == Some(resume.session) && context.totals.messages == compacts.messages
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
        let held_pins = working_set.pinned_facts.clone();
        if let Some(context) = &self.context {
            let pins = &context.working_set.pinned_facts;
            if let Some(CompactionTarget { receipt, .. }) = &mut compacts {
                // Facts may have been pinned or unpinned since the save.
                working_set.pinned_facts.clone_from(pins);
                receipt.pins = pins.iter().map(|fact| fact.text.clone()).collect();
            } else if context.totals.messages == 0 {
                // Pinned facts of a context without messages are in no session yet, so the new context keeps them.
                working_set.pinned_facts.extend(pins.iter().cloned());
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
        effects.push(Effect::ReplaceWithMessages {
            old: self.context.as_ref().map(|context| context.number),
            new: Box::new(begin.clone()),
            messages: messages.clone(),
            working_set: Box::new(working_set.clone()),
            restoration: cost,
            event,
        });
        // The working set, the cost, and the messages.
        let next_record = u32::try_from(messages.len()).unwrap_or(u32::MAX).saturating_add(2);
        let totals = Totals::count(&messages);
        let messages = Arc::new(messages);
        let context = Context {
            messages,
            totals,
            saved_pins: held_pins,
            working_set,
            restoration: cost,
            ..context_from_head(&begin)
        };
        let receipt = compacts.map(|compacts| Box::new(compacts.receipt));
        let by = Replacement { restored: None, next_record, receipt };
        self.exclusive =
            Some(ExclusiveOp::Replacing { request, context: Box::new(context), replacement: by, saved_first });
    }

    /// Brings the messages back into the window that the last compaction removed.
    pub(super) fn uncompact(&mut self, asked: &RequestMeta, effects: &mut Vec<Effect>) {
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
    let Receipt { tokens_before, tokens_after, left, source, fallback, offered, done, dropped, .. } = receipt;
    let mut told = format!(
        "compacted {left} older messages (~{tokens_before} to ~{tokens_after} tokens); nothing is deleted, undo \
         with `chorusctl context compact --undo`"
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
