//! Handles the completion of exclusive operations. Part of the state machine.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::context::ClearResult;
use chorus_proto::{EventType, Session, TokenPair, Trigger};
use chorus_session::stored_message::ContextNo;
use serde_json::json;

use super::AgentSettings;
use super::context::Context;
use super::effect::Effect;
use super::event::{CommandOutcome, CompactedContext, CompactionSave, RestoredContext, SavedContext, WrittenSession};
use super::state::{AfterSave, ExclusiveOp, State};

/// From this number on, freeing messages takes longer than a thread switch.
const MANY_MESSAGES: usize = 4096;

impl State {
    pub(super) fn on_session_written(&mut self, result: Result<WrittenSession>, effects: &mut Vec<Effect>) {
        let Some(ExclusiveOp::Writing { request, after: then }) = self.exclusive.take() else { return };
        let WrittenSession { session, summarise_with: summarise, unchanged_since, warning } = match result {
            Ok(written) => written,
            Err(failure) => {
                effects.push(Effect::Reply(request, Err(failure)));
                return;
            }
        };
        if let Some(context) = &mut self.context {
            context.mark_saved(session.header.id, session.header.message_count);
        }
        let pending = emit_saved(&session, summarise, effects);
        match then {
            AfterSave::Reply => {
                effects.push(Effect::Reply(
                    request,
                    Ok(CommandOutcome::Saved(SavedContext {
                        session,
                        cleared: false,
                        summary_pending: pending,
                        unchanged_since,
                        warning,
                    })),
                ));
            }
            AfterSave::Compact => {
                let context = self.context.as_ref();
                let view = context.map_or(0, Context::window_start);
                let context = context.map_or(ContextNo(0), |context| context.number);
                effects.push(Effect::Reply(
                    request,
                    Ok(CommandOutcome::SavedForCompaction(CompactionSave {
                        context,
                        window_start: view,
                        session,
                        summary_pending: pending,
                    })),
                ));
            }
            AfterSave::Clear => self.end_context(
                request,
                CommandOutcome::Saved(SavedContext {
                    session,
                    cleared: true,
                    summary_pending: pending,
                    unchanged_since,
                    warning,
                }),
                None,
                effects,
            ),
            AfterSave::ClearWith { discarded } => {
                let pins = self.context.as_ref().map_or(0, Context::pin_count);
                let result = ClearResult { discarded, pins, saved: Some(*session) };
                self.end_context(request, CommandOutcome::Cleared(Box::new(result)), None, effects);
            }
            AfterSave::Restore(plan) => {
                let (begin, restore) = *plan;
                self.replace_with_session(request, begin, restore, Some(session), effects);
            }
            AfterSave::Resume(plan) => {
                let (begin, resume) = *plan;
                self.replace_with_messages(request, begin, resume, Some(session), effects);
            }
            AfterSave::ReplySavedIfUnsaved { end: true } => {
                self.end_context(request, CommandOutcome::SavedIfUnsaved(Some(session)), None, effects)
            }
            AfterSave::ReplySavedIfUnsaved { end: false } => {
                effects.push(Effect::Reply(request, Ok(CommandOutcome::SavedIfUnsaved(Some(session)))));
            }
            AfterSave::Expire { timeout } => {
                let written = Some(session.clone());
                let notice = Effect::PostIdleNotice { session: session.header.id, written, timeout };
                self.end_context(request, CommandOutcome::SavedIfUnsaved(Some(session)), Some(notice), effects);
            }
        }
    }

    pub(super) fn on_context_ended(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(ExclusiveOp::Ending { request, reply, notice }) = self.exclusive.take() else { return };
        if result.is_ok() {
            let discarded = self.context.as_ref().map_or(0, |context| context.totals.messages);
            effects.push(Effect::EmitEvent(EventType::ContextCleared, json!({"discarded": discarded})));
            effects.extend(notice);
            self.end_and_reset(effects);
        }
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }

    pub(super) fn on_context_replaced(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(ExclusiveOp::Replacing { request, context, replacement: by, saved_first }) = self.exclusive.take()
        else {
            return;
        };
        let messages = context.totals.messages;
        if result.is_ok() {
            if let Some((id, session_id)) = by.restored {
                let data = json!({"id": id, "session_id": session_id, "messages": messages});
                effects.push(Effect::EmitEvent(EventType::ContextRestored, data));
            }
            self.end_and_reset(effects);
            self.context = Some(*context);
            self.next_record = by.next_record;
        }
        let reply = match by.receipt {
            Some(receipt) => CommandOutcome::Compacted(CompactedContext { receipt, messages }),
            None => CommandOutcome::Restored(RestoredContext { messages, saved_first }),
        };
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }

    /// Drops the context, and what is large of it where it delays no request.
    fn end_and_reset(&mut self, effects: &mut Vec<Effect>) {
        let ended = self.context.take().map(|context| context.messages);
        effects.extend(ended.filter(|messages| messages.len() >= MANY_MESSAGES).map(Effect::FreeMessages));
        self.reset();
    }

    pub(super) fn on_messages_materialised(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(ExclusiveOp::Materialising { request, session }) = self.exclusive.take() else { return };
        if result.is_ok()
            && let Some(context) = &mut self.context
        {
            context.base_session = None;
            if context.saved_session == Some(session) {
                (context.saved_session, context.saved) = (None, 0);
            }
            context.rewound.clear();
            // Records: the messages, the working set before the first compaction, each compaction, the working set now,
            // the tokens that resuming cost, and the compaction by hand, each if there are any. See `trailing_records`.
            let cost = usize::from(context.restoration != TokenPair::default());
            let begun = usize::from(context.begun_by_compaction.is_some());
            let behind = context.compactions.len() + usize::from(!context.compactions.is_empty()) + 1 + cost + begun;
            self.next_record = u32::try_from(context.messages.len() + behind).unwrap_or(u32::MAX);
        }
        effects.push(Effect::Reply(request, result.map(|()| CommandOutcome::Materialised)));
    }
}

/// Emits the events of a save. Returns true if the summary follows later, because a model is asked for it.
fn emit_saved(session: &Session, summarise: Option<Arc<AgentSettings>>, effects: &mut Vec<Effect>) -> bool {
    let header = &session.header;
    let data = json!({
        "id": header.id, "short_id": session.short_id, "session_id": header.session_id,
        "trigger": header.trigger, "messages": header.message_count,
    });
    effects.push(Effect::EmitEvent(EventType::ContextSaved, data));
    if let Some(settings) = summarise {
        // A shutdown waits for no model; the next start asks for the summary.
        let now = header.trigger != Trigger::Shutdown;
        if now {
            effects.push(Effect::Summarise { session: header.id, settings });
        }
        return now;
    }
    if let Some(summary) = &header.summary {
        let data = json!({"id": header.id, "summary": summary, "source": header.summary_source});
        effects.push(Effect::EmitEvent(EventType::SummaryReady, data));
    }
    false
}
