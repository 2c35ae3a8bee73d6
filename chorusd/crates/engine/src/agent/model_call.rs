//! Model calls: builds the request, streams the reply to the listeners and turns the result into one event.

use std::sync::Arc;

use chorus_agent_core::compaction::{Compaction, CompactionPlan};
use chorus_agent_core::compaction_extraction::NOTES_PENDING;
use chorus_agent_core::effect::CallModel;
use chorus_agent_core::turn::{EventTime, ModelFailure, ModelReply};
use chorus_agent_core::turn_sink::TurnSinks;
use chorus_base::error::Error;
use chorus_base::new_id;
use chorus_journal::NewEvent;
use chorus_llm::{CallError, ErrorClass, ModelRef, Models, Reply, SETUP_HINT, StopReason, StreamEvent};
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::shell_word::shell_word;
use chorus_proto::{ErrorKind, EventType, Message, NewMessage, Recall, Role, ToolCall, Usage};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::background_extraction::ExtractionJob;
use super::model_limits::ModelLimits;
use super::prompt_check::PromptCheck;
use super::redacted_stream::{RedactedStream, redact_reply};
use super::registry::Registry;
use super::request_builder::{BuildOutcome, build_request};
use super::{background_extraction, context_overflow_hint, memory_prompt, recall};
use crate::usage::{CallKind, ModelCallInfo};

/// The outcome of a model call.
#[derive(Debug)]
pub(super) enum ModelCallOutcome {
    Completed(Box<Result<ModelReply, Box<ModelFailure>>>),
    /// The window must be compacted first; no request was sent.
    NeedsCompaction(Box<Compaction>),
    /// The window must have these passages first; no request was sent.
    Recalled(Box<Recall>),
}

/// Calls the model, unless its window must be compacted first.
pub(super) async fn run(
    registry: &Arc<Registry>,
    conversation: ConversationKey,
    call: CallModel,
    sinks: TurnSinks,
    cancel: CancellationToken,
) -> ModelCallOutcome {
    match try_call(registry, conversation, call, sinks, cancel).await {
        Ok(ended) => ended,
        Err(stopped) => ModelCallOutcome::Completed(Box::new(Err(stopped))),
    }
}

async fn try_call(
    registry: &Arc<Registry>,
    conversation: ConversationKey,
    call: CallModel,
    sinks: TurnSinks,
    cancel: CancellationToken,
) -> Result<ModelCallOutcome, Box<ModelFailure>> {
    let name = call.settings.name.clone();
    let Some(model) = call.settings.model.clone() else {
        return Err(failure_before_call(no_model_error(&name, &registry.models)));
    };
    let target = registry.models.resolve(&model).map_err(failure_before_call)?;
    registry.usage.check_limits(&call.settings).await.map_err(failure_before_call)?;
    if let Some(recall) = recall::recall(registry, conversation, &call).await {
        return Ok(ModelCallOutcome::Recalled(Box::new(recall)));
    }
    let ratio = registry.usage.calibration_ratio(&target.to_string()).await.map_err(failure_before_call)?;
    let accepts = ModelLimits::for_target(&registry.models, &target, ratio);
    let (longest, tight) = (registry.models.max_reply_tokens(&target, call.settings.window.tokens), call.reduced);
    let (turn, step, settings, context) = (call.turn, call.step, call.settings.clone(), call.context);
    let remembered = memory_prompt::load_memory_blocks(
        &registry.store.catalog.memories,
        vec![memory_prompt::memory_scope(&settings)],
    )
    .await
    .map_err(failure_before_call)?
    .pop()
    .flatten();
    let servers = registry.tools.start_mcp_servers(&settings.mcp).await;
    let asked = Arc::new(call);
    let call = asked.clone();
    let (counter, named) = (registry.token_counter.clone(), target.clone());
    let built = chorus_runtime::spawn_blocking(move || {
        let built = build_request(&call, remembered, &servers, accepts);
        let print = match &built {
            BuildOutcome::Prompt(prompt) => Some(counter.fingerprint(&named, &prompt.request)),
            BuildOutcome::NeedsCompaction(_) => None,
        };
        (built, print)
    });
    let (built, print) = built.await.map_err(|e| failure_before_call(Error::internal(e.to_string())))?;
    let mut prompt = match built {
        BuildOutcome::Prompt(prompt) => prompt,
        BuildOutcome::NeedsCompaction(plan) => {
            let compaction =
                build_compaction(registry, conversation, asked, plan).await.map_err(failure_before_call)?;
            return Ok(ModelCallOutcome::NeedsCompaction(Box::new(compaction)));
        }
    };
    prompt.limit_reply(longest, accepts.tokens, tight);
    if let (Some(print), false) = (&print, tight) {
        let call = PromptCheck { agent: settings.id, target: &target, request: &prompt.request, print, ratio };
        if let Some(tokens) = call.exceeding_tokens(registry).await {
            return Err(Box::new(too_long_failure(&target, tokens)));
        }
    }
    // The messages may grow while the model replies. Dropping this reference keeps that from copying them.
    drop(asked);
    tracing::debug!(agent = %name, %turn, step, left_out = prompt.left_out, model = %target, "waiting for the model");
    let (at, estimated) = (registry.clock.now(), chorus_llm::tokens_of_request(&prompt.request));
    let redactor = settings.redact.then_some(&registry.redactor);
    let hearing =
        RedactedStream::new(redactor, |piece| forward_output(registry, (&name, conversation), turn, &sinks, piece));
    let traced = registry.traces.start_call(&prompt.request);
    let answered = registry.models.call(&target, &prompt.request, &|piece| hearing.push(piece), cancel).await;
    hearing.finish();
    if let (Some(print), Ok(reply)) = (&print, &answered) {
        registry.token_counter.record(settings.id, print, reply.usage.input_tokens.unwrap_or(0));
    }
    let (kind, context) = (CallKind::Turn, Some(context));
    let price = registry.models.price(&target);
    let caller = ModelCallInfo {
        agent: &settings,
        conversation: conversation.stored_id(),
        context,
        turn_id: Some(turn),
        kind,
        target: &target,
        price,
        estimated,
        at,
    };
    registry.traces.end_call(traced, &caller, &answered, registry.clock.now());
    if let Some(row) = caller.to_row(&answered) {
        registry.usage.record_call(row).await;
    }
    Ok(ModelCallOutcome::Completed(Box::new(match redact_reply(answered, redactor) {
        Ok((reply, kept)) => Ok(to_model_reply(reply, kept, registry.clock.now())),
        Err(error) => Err(Box::new(to_model_failure(
            error,
            || context_overflow_hint::largest_part_hint(&prompt, &settings.name),
            registry.clock.now(),
        ))),
    })))
}

/// Builds the compaction by rules, and has the model extract notes in the background if the messages are worth it.
async fn build_compaction(
    registry: &Arc<Registry>,
    conversation: ConversationKey,
    call: Arc<CallModel>,
    plan: CompactionPlan,
) -> Result<Compaction, Error> {
    let leaving = ExtractionJob::for_plan(registry, &call, &plan);
    let fallback = match &leaving {
        Ok(Some(_)) => Some(NOTES_PENDING.to_owned()),
        Ok(None) => None,
        Err(why) => Some(why.clone()),
    };
    let by_rules =
        chorus_runtime::spawn_blocking(move || plan.compact_by_rules(&call.messages, &call.working_set, fallback));
    let compaction = by_rules.await.map_err(|e| Error::internal(e.to_string()))?;
    if let Ok(Some(leaving)) = leaving {
        background_extraction::spawn_extraction(registry, conversation, leaving);
    }
    Ok(compaction)
}

/// Returns the current time on both clocks.
pub(super) fn current_moment(registry: &Registry) -> EventTime {
    EventTime { now: registry.clock.now(), ticks: registry.clock.ticks() }
}

/// Forwards a piece of the reply to the turn's listeners and to observers.
fn forward_output(
    registry: &Registry,
    (agent, conversation): (&str, ConversationKey),
    turn: Uuid,
    sinks: &TurnSinks,
    piece: StreamEvent,
) {
    let said = match piece {
        StreamEvent::Text(text) => TurnEvent::Text(text),
        StreamEvent::Thinking(text) => TurnEvent::Thinking(text),
        StreamEvent::Note(note) => TurnEvent::Note(note),
        StreamEvent::Retry { attempt, wait, why } => {
            TurnEvent::Note(format!("{why}; attempt {attempt} in {:.1} s", wait.as_secs_f64()))
        }
        // Announced when the tool runs.
        StreamEvent::ToolCall { .. } => return,
    };
    sinks.send(&said);
    registry.store.journal.publisher().publish_transient(|| {
        let data = match said {
            TurnEvent::Thinking(text) => json!({"turn_id": turn, "thinking": text}),
            TurnEvent::Note(text) => json!({"turn_id": turn, "note": text}),
            TurnEvent::Text(text) => json!({"turn_id": turn, "text": text}),
            _ => json!({"turn_id": turn}),
        };
        let (at, conversation) = (registry.clock.now(), registry.agents.conversations.name(conversation));
        NewEvent { at, kind: EventType::TurnDelta, agent: Some(agent.to_owned()), conversation, data }
    });
}

fn to_model_reply(reply: Reply, kept: Vec<ToolCall>, now: jiff::Timestamp) -> ModelReply {
    let note = match &reply.stop {
        StopReason::MaxTokens => Some("the reply was cut off at the token limit".to_owned()),
        StopReason::Refused => Some("the model refused to reply".to_owned()),
        StopReason::Other(why) => Some(format!("the model stopped: {why}")),
        StopReason::End | StopReason::ToolCalls if reply.content.is_empty() && reply.tool_calls.is_empty() => {
            Some("the model returned an empty reply".to_owned())
        }
        StopReason::End | StopReason::ToolCalls => None,
    };
    let silent = reply.content.is_empty() && reply.tool_calls.is_empty() && reply.provider.is_none();
    let message = (!silent)
        .then(|| assistant_message(reply.content.clone(), kept.clone(), reply.provider, reply.usage.clone(), now));
    ModelReply {
        message: message.flatten(),
        text: reply.content,
        calls: reply.tool_calls,
        redacted_calls: kept,
        usage: reply.usage,
        note,
    }
}

/// Builds an assistant message. `None` cannot happen: strings and raw JSON always serialise.
fn assistant_message(
    content: String,
    tool_calls: Vec<ToolCall>,
    provider: Option<Box<RawValue>>,
    usage: Usage,
    now: jiff::Timestamp,
) -> Option<StoredMessage> {
    let message = Message {
        tool_calls,
        provider,
        usage: (usage != Usage::default()).then_some(usage),
        ..NewMessage::text(Role::Assistant, content).complete(|| new_id().to_string(), now)
    };
    StoredMessage::new(&message).ok()
}

/// Builds the message for a reply that was interrupted.
fn interrupted_message(content: String, usage: Usage, now: jiff::Timestamp) -> Option<StoredMessage> {
    let message = Message {
        usage: (usage != Usage::default()).then_some(usage),
        interrupted: true,
        ..NewMessage::text(Role::Assistant, content).complete(|| new_id().to_string(), now)
    };
    StoredMessage::new(&message).ok()
}

fn to_model_failure(error: CallError, room: impl FnOnce() -> String, now: jiff::Timestamp) -> ModelFailure {
    let kind = match error.class {
        ErrorClass::Cancelled => ErrorKind::Interrupted,
        _ if !error.partial.is_empty() => ErrorKind::Interrupted,
        _ => ErrorKind::ModelUnavailable,
    };
    let too_long = error.class == ErrorClass::ContextTooLong;
    let usage = error.usage.map(|usage| *usage).unwrap_or_default();
    let partial = (!error.partial.is_empty()).then(|| interrupted_message(error.partial, usage.clone(), now));
    let failure = Error::new(kind, error.message);
    let hint = if too_long {
        room()
    } else {
        error.hint.unwrap_or_else(|| "your message was saved; send another message to continue".to_owned())
    };
    ModelFailure { failure: failure.hint(hint), partial: partial.flatten(), usage, too_long }
}

/// Builds the failure of a call that was not made because its prompt is too long for the model.
fn too_long_failure(target: &ModelRef, tokens: u64) -> ModelFailure {
    let failure =
        Error::new(ErrorKind::ModelUnavailable, format!("the conversation is too long for {target}: {tokens} tokens"));
    ModelFailure { failure, partial: None, usage: Usage::default(), too_long: true }
}

fn failure_before_call(failure: Error) -> Box<ModelFailure> {
    Box::new(ModelFailure { failure, partial: None, usage: Usage::default(), too_long: false })
}

/// Returns the error that an agent has no model, with the way to one.
#[must_use]
pub fn no_model_error(agent: &str, models: &Models) -> Error {
    let hint = match (models.has_providers(), models.only_model()) {
        (false, _) => SETUP_HINT.to_owned(),
        (true, Some(model)) => format!("chorusctl config set default_model {}", shell_word(&model.to_string())),
        (true, None) => {
            format!("list models with `chorusctl models`, then set one: chorusctl agent config {agent} model NAME")
        }
    };
    Error::new(ErrorKind::ModelUnavailable, format!("agent {agent} has no model")).hint(hint)
}
