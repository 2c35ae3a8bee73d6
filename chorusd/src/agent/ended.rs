//! What follows when something exclusive has ended. Part of the state machine.

use std::sync::Arc;

use chorus_proto::methods::context::ClearResult;
use chorus_proto::{EventType, Session, TokenPair, Trigger};
use serde_json::json;

use super::Facts;
use super::context::Context;
use super::effect::Effect;
use super::event::{Reply, Written};
use super::state::{Busy, State, Then};
use crate::failure::Result;
use crate::message::ContextNo;

impl State {
    pub(super) fn written(&mut self, result: Result<Written>, effects: &mut Vec<Effect>) {
        let Some(Busy::Writing { request, then }) = self.busy.take() else { return };
        let Written { session, summarise, warning } = match result {
            Ok(written) => written,
            Err(failure) => {
                effects.push(Effect::Reply(request, Err(failure)));
                return;
            }
        };
        if let Some(context) = &mut self.context {
            context.held_by(session.header.id, session.header.message_count);
        }
        let pending = tell_saved(&session, summarise, effects);
        match then {
            Then::Answer => {
                effects.push(Effect::Reply(request, Ok(Reply::Saved { session, cleared: false, pending, warning })));
            }
            Then::Compact => {
                let context = self.context.as_ref();
                let view = context.map_or(0, Context::view);
                let context = context.map_or(ContextNo(0), |context| context.no);
                effects.push(Effect::Reply(request, Ok(Reply::SavedToCompact { context, view, session, pending })));
            }
            Then::Clear => self.end(request, Reply::Saved { session, cleared: true, pending, warning }, None, effects),
            Then::ClearWith { discarded } => {
                let pins = self.context.as_ref().map_or(0, Context::pins);
                let result = ClearResult { discarded, pins, saved: Some(*session) };
                self.end(request, Reply::Cleared(Box::new(result)), None, effects);
            }
            Then::Restore(plan) => {
                let (begin, restore) = *plan;
                self.replace(request, begin, restore, Some(session), effects);
            }
            Then::Resume(plan) => {
                let (begin, resume) = *plan;
                self.renew(request, begin, resume, Some(session), effects);
            }
            Then::PutAway { end: true } => self.end(request, Reply::PutAway(Some(session)), None, effects),
            Then::PutAway { end: false } => {
                effects.push(Effect::Reply(request, Ok(Reply::PutAway(Some(session)))));
            }
            Then::Idle { timeout } => {
                let written = Some(session.clone());
                let notice = Effect::IdleNotice { session: session.header.id, written, timeout };
                self.end(request, Reply::PutAway(Some(session)), Some(notice), effects);
            }
        }
    }

    pub(super) fn ended(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Ending { request, reply, notice }) = self.busy.take() else { return };
        if result.is_ok() {
            let discarded = self.context.as_ref().map_or(0, |context| context.totals.messages);
            effects.push(Effect::Tell(EventType::ContextCleared, json!({"discarded": discarded})));
            effects.extend(notice);
            self.forget();
        }
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }

    pub(super) fn replaced(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Replacing { request, context, by, saved_first }) = self.busy.take() else { return };
        let messages = context.totals.messages;
        if result.is_ok() {
            if let Some((id, session_id)) = by.restored {
                let data = json!({"id": id, "session_id": session_id, "messages": messages});
                effects.push(Effect::Tell(EventType::ContextRestored, data));
            }
            self.forget();
            self.context = Some(*context);
            self.next_record = by.next_record;
        }
        let reply = match by.receipt {
            Some(receipt) => Reply::Compacted { receipt, messages },
            None => Reply::Restored { messages, saved_first },
        };
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }

    pub(super) fn materialised(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Materialising { request, session }) = self.busy.take() else { return };
        if result.is_ok()
            && let Some(context) = &mut self.context
        {
            context.base_session = None;
            if context.saved_session == Some(session) {
                (context.saved_session, context.saved) = (None, 0);
            }
            context.rewound.clear();
            // The messages, and what the actor writes behind them: the working set, before each compaction and now, and what resuming cost.
            let cost = usize::from(context.restoration != TokenPair::default());
            let behind = context.compactions.len() + usize::from(!context.compactions.is_empty()) + 1 + cost;
            self.next_record = u32::try_from(context.messages.len() + behind).unwrap_or(u32::MAX);
        }
        effects.push(Effect::Reply(request, result.map(|()| Reply::Materialised)));
    }
}

/// Tells observers; true where the summary is told later, because a model is asked first.
fn tell_saved(session: &Session, summarise: Option<Arc<Facts>>, effects: &mut Vec<Effect>) -> bool {
    let header = &session.header;
    let data = json!({
        "id": header.id, "short_id": session.short_id, "session_id": header.session_id,
        "trigger": header.trigger, "messages": header.message_count,
    });
    effects.push(Effect::Tell(EventType::ContextSaved, data));
    if let Some(facts) = summarise {
        // A stop waits for no model: the next start asks.
        let now = header.trigger != Trigger::Shutdown;
        if now {
            effects.push(Effect::Summarise { session: header.id, facts });
        }
        return now;
    }
    if let Some(summary) = &header.summary {
        let data = json!({"id": header.id, "summary": summary, "source": header.summary_source});
        effects.push(Effect::Tell(EventType::SummaryReady, data));
    }
    false
}
