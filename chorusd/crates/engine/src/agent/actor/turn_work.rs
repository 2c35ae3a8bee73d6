//! The part of an actor that runs turns: calls of the model, tool calls, and who hears of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chorus_agent_core::effect::{CallModel, RunTools};
use chorus_agent_core::event::Event;
use chorus_agent_core::interruption_reason::Interruption;
use chorus_agent_core::turn::ModelFailure;
use chorus_base::error::Error;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{Role, Usage};
use chorus_session::stored_message::StoredMessage;
use futures_util::future::FutureExt as _;

use super::Actor;
use crate::agent::attached_clients::message_event;
use crate::agent::model_call;
use crate::agent::tool_runner::ToolRunner;

impl Actor {
    /// Returns the events about messages that attached clients hear of when they are stored: what a turn itself says
    /// reaches them as its pieces.
    pub(super) fn heard_messages(&self, messages: &[StoredMessage]) -> Vec<TurnEvent> {
        if !self.registry.attached.has_any(self.conversation) {
            return Vec::new();
        }
        let in_turn = self.state.running_turn().is_some();
        let of_turn = |role| in_turn && matches!(role, Role::Assistant | Role::ToolResult);
        messages.iter().filter(|message| !of_turn(message.role())).filter_map(message_event).collect()
    }

    /// Acquires or releases the turn's priority over background requests to the same provider.
    pub(super) fn update_turn_priority(&mut self) {
        let calls = self.state.is_waiting_for_model();
        if calls == self.turn_guard.is_some() {
            return;
        }
        let registry = &self.registry;
        let entry = registry.agents.by_id(self.conversation.agent).filter(|_| calls);
        let target = entry.and_then(|entry| registry.models.resolve(entry.settings.model.as_deref()?).ok());
        self.turn_guard = target.map(|target| registry.summaries.turn_priority.begin_turn(&target.provider));
    }

    pub(super) fn call_model(&mut self, mut asked: CallModel) {
        // Settings that changed during the turn, also by the agent itself, apply from this call on.
        if let Some(entry) = self.registry.agents.by_id(self.conversation.agent) {
            asked.settings = entry.settings.clone();
        }
        asked.settings = asked.settings.with_model(asked.model.as_deref());
        let (of, registry, conversation) = ((asked.turn, asked.step), self.registry.clone(), self.conversation);
        let (Some(turn), most) = (self.turn.clone(), asked.settings.concurrent_turns) else { return };
        // In a task of its own, so that it goes on while this actor is busy.
        let task = chorus_runtime::spawn(async move {
            let has_slot = turn.wait_for_slot(&registry, conversation, most).await;
            // While it waited, its agent may have been destroyed, whose other turns have just ended.
            let reason = match registry.agents.by_id(conversation.agent) {
                None if turn.has_waited() => Some(Interruption::AgentDestroyed),
                _ => (!has_slot).then_some(Interruption::Cancelled),
            };
            if let Some(reason) = reason {
                let moment = model_call::current_moment(&registry);
                let failure = reason.error_for_running_turn();
                return Event::ModelCalled { turn_step: of, moment, result: Box::new(Err(Box::new(stopped(failure)))) };
            }
            if let Some(ownership) = &registry.store.ownership {
                tokio::select! {
                    () = ownership.held() => {}
                    () = turn.cancel.cancelled() => {}
                }
            }
            let ended = model_call::run(&registry, conversation, asked, turn.sinks, turn.cancel).await;
            let moment = model_call::current_moment(&registry);
            match ended {
                model_call::ModelCallOutcome::Completed(result) => Event::ModelCalled { turn_step: of, moment, result },
                model_call::ModelCallOutcome::NeedsCompaction(compaction) => {
                    Event::CompactionPlanned { turn_step: of, moment, compaction }
                }
                model_call::ModelCallOutcome::Recalled(recall) => Event::Recalled { turn_step: of, moment, recall },
            }
        });
        let registry = self.registry.clone();
        let ended = task.map(move |ended| {
            ended.unwrap_or_else(|e| {
                let moment = model_call::current_moment(&registry);
                let failure = Error::internal(e.to_string());
                Event::ModelCalled { turn_step: of, moment, result: Box::new(Err(Box::new(stopped(failure)))) }
            })
        });
        self.running.push(ended.boxed());
    }

    pub(super) fn run_tools(&mut self, run: RunTools) {
        let Some(turn) = self.turn.clone().filter(|turn| turn.id == run.turn) else { return };
        if run.cancelled {
            turn.cancel.cancel();
        }
        let of = (run.turn, run.step);
        let (registry, conversation) = (self.registry.clone(), self.conversation);
        let (name, conversation_name) = (self.name.clone(), self.conversation_name.clone());
        // The newest message is the one with the calls: nothing is appended between calls and their results.
        let messages = self.state.context().map(|context| context.messages.clone()).unwrap_or_default();
        let message = messages.last().and_then(|message| message.to_message().ok()).map(|message| message.id);
        let last_number = Arc::new(AtomicU64::new(messages.len() as u64));
        let (requester, turn_step) = (run.requester, of);
        let batch = ToolRunner {
            registry,
            conversation,
            name,
            conversation_name,
            turn_step,
            message,
            last_number,
            requester,
            turn,
        };
        self.running.extend(batch.start_calls(run.calls, run.breaker));
    }
}

/// Returns the failure of a call that said nothing.
fn stopped(failure: Error) -> ModelFailure {
    ModelFailure { failure, partial: None, usage: Usage::default(), too_long: false }
}
