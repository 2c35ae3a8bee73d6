//! Asking the model: what the state machine wants asked becomes a request, and what comes back one event.

use std::sync::Arc;

use chorus_proto::methods::send::Said;
use chorus_proto::{ErrorKind, EventType, Message, NewMessage, Role, ToolCall, Usage};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accepts::Accepts;
use super::compaction::{Compaction, Plan};
use super::effect::CallModel;
use super::memories;
use super::prepare::{Prepared, prepare};
use super::redacted::{Hearing, redacted};
use super::registry::Registry;
use super::room;
use super::turn::{Answer, Moment, Stopped};
use super::voice::Voices;
use super::write_down::{self, LATER, Leaving};
use crate::clock::new_id;
use crate::estimate;
use crate::failure::Failure;
use crate::llm::{CallError, Class, Output, Reply, Stop};
use crate::message::Stored;
use crate::store::journal::NewEvent;
use crate::usage::{CallKind, Caller};

/// What a call came to.
#[derive(Debug)]
pub enum Ended {
    Called(Box<Result<Answer, Box<Stopped>>>),
    /// The window is to be compacted first; nobody was asked.
    Compacts(Box<Compaction>),
}

/// Calls the model, unless its window is to be compacted first.
pub async fn call(registry: &Arc<Registry>, call: CallModel, voices: Voices, cancel: CancellationToken) -> Ended {
    match ask(registry, call, voices, cancel).await {
        Ok(ended) => ended,
        Err(stopped) => Ended::Called(Box::new(Err(stopped))),
    }
}

async fn ask(
    registry: &Arc<Registry>,
    call: CallModel,
    voices: Voices,
    cancel: CancellationToken,
) -> Result<Ended, Box<Stopped>> {
    let name = call.facts.name.clone();
    let Some(model) = call.facts.model.clone() else {
        return Err(stopped(no_model(&name)));
    };
    let target = registry.models.resolve(&model).map_err(stopped)?;
    registry.usage.may_call(&call.facts).await.map_err(stopped)?;
    let ratio = registry.usage.ratio(&target.to_string()).await.map_err(stopped)?;
    let accepts = Accepts::of(&registry.models, &target, ratio);
    let (longest, tight) = (registry.models.longest_answer(&target, call.facts.window.tokens), call.tight);
    let (turn, step, facts, context) = (call.turn, call.step, call.facts.clone(), call.context);
    let remembered =
        memories::shown(&registry.store.catalog, vec![memories::whose(&facts)]).await.map_err(stopped)?.pop().flatten();
    let asked = Arc::new(call);
    let call = asked.clone();
    let built = tokio::task::spawn_blocking(move || prepare(&call, remembered, accepts)).await;
    let mut prompt = match built.map_err(|e| stopped(Failure::internal(e.to_string())))? {
        Prepared::Prompt(prompt) => prompt,
        Prepared::Compacts(plan) => {
            let compaction = compacted(registry, asked, plan).await.map_err(stopped)?;
            return Ok(Ended::Compacts(Box::new(compaction)));
        }
    };
    prompt.bound_answer(longest, accepts.tokens, tight);
    // The conversation may grow while the model speaks: nobody else holds it then.
    drop(asked);
    tracing::debug!(agent = %name, %turn, step, left_out = prompt.left_out, model = %target, "asking the model");
    let (at, estimated) = (registry.clock.now(), estimate::request(&prompt.request));
    let redactor = facts.redact.then(|| registry.models.redactor());
    let hearing = Hearing::new(redactor, |piece| tell(registry, &name, turn, &voices, piece));
    let answered = registry.models.call(&target, &prompt.request, &|piece| hearing.hear(piece), cancel).await;
    hearing.end();
    let (kind, context) = (CallKind::Turn, Some(context));
    let price = registry.models.price_of(&target);
    let caller = Caller { facts: &facts, context, turn_id: Some(turn), kind, target: &target, price, estimated, at };
    if let Some(row) = caller.ended(&answered) {
        registry.usage.note(row).await;
    }
    Ok(Ended::Called(Box::new(match redacted(answered, redactor) {
        Ok((reply, kept)) => Ok(answer(reply, kept, registry.clock.now())),
        Err(error) => Err(Box::new(failed(error, || room::hint(&prompt, &facts.name), registry.clock.now()))),
    })))
}

/// What is kept of the messages that leave: what rules find, until the model has written down what is not to be forgotten.
async fn compacted(registry: &Arc<Registry>, call: Arc<CallModel>, plan: Plan) -> Result<Compaction, Failure> {
    let leaving = Leaving::of(registry, &call, &plan);
    let fallback = match &leaving {
        Ok(Some(_)) => Some(LATER.to_owned()),
        Ok(None) => None,
        Err(why) => Some(why.clone()),
    };
    let by_rules = tokio::task::spawn_blocking(move || plan.by_rules(&call.messages, &call.working_set, fallback));
    let compaction = by_rules.await.map_err(|e| Failure::internal(e.to_string()))?;
    if let Ok(Some(leaving)) = leaving {
        write_down::begin(registry, leaving);
    }
    Ok(compaction)
}

/// When an event comes in.
pub fn moment(registry: &Registry) -> Moment {
    Moment { now: registry.clock.now(), ticks: registry.clock.ticks() }
}

/// Passes on what the model says while it says it.
fn tell(registry: &Registry, agent: &str, turn: Uuid, voices: &Voices, piece: Output) {
    let said = match piece {
        Output::Text(text) => Said::Text(text),
        Output::Thinking(text) => Said::Thinking(text),
        Output::Note(note) => Said::Note(note),
        Output::Retry { attempt, wait, why } => {
            Said::Note(format!("{why}; try {attempt} in {:.1} s", wait.as_secs_f64()))
        }
        // It is told when it runs.
        Output::Call { .. } => return,
    };
    voices.say(&said);
    registry.store.journal.whisper(|| {
        let data = match said {
            Said::Thinking(text) => json!({"turn_id": turn, "thinking": text}),
            Said::Note(text) => json!({"turn_id": turn, "note": text}),
            Said::Text(text) => json!({"turn_id": turn, "text": text}),
            _ => json!({"turn_id": turn}),
        };
        NewEvent { at: registry.clock.now(), kind: EventType::TurnDelta, agent: Some(agent.to_owned()), data }
    });
}

fn answer(reply: Reply, kept: Vec<ToolCall>, now: jiff::Timestamp) -> Answer {
    let note = match &reply.stop {
        Stop::MaxTokens => Some("the answer was cut: it had reached its greatest length".to_owned()),
        Stop::Refused => Some("the model refused to answer".to_owned()),
        Stop::Other(why) => Some(format!("the model stopped: {why}")),
        Stop::End | Stop::Calls if reply.content.is_empty() && reply.tool_calls.is_empty() => {
            Some("the model's answer is empty".to_owned())
        }
        Stop::End | Stop::Calls => None,
    };
    let silent = reply.content.is_empty() && reply.tool_calls.is_empty() && reply.provider.is_none();
    let message =
        (!silent).then(|| said(reply.content.clone(), kept.clone(), reply.provider, reply.usage.clone(), now));
    Answer { message: message.flatten(), text: reply.content, calls: reply.tool_calls, kept, usage: reply.usage, note }
}

/// A message of the assistant; `None` never happens: texts and raw JSON serialise.
fn said(
    content: String,
    tool_calls: Vec<ToolCall>,
    provider: Option<Box<RawValue>>,
    usage: Usage,
    now: jiff::Timestamp,
) -> Option<Stored> {
    let message = Message {
        tool_calls,
        provider,
        usage: (usage != Usage::default()).then_some(usage),
        ..NewMessage::text(Role::Assistant, content).complete(|| new_id().to_string(), now)
    };
    Stored::new(&message).ok()
}

/// What came of an answer that was cut off.
fn cut_off(content: String, usage: Usage, now: jiff::Timestamp) -> Option<Stored> {
    let message = Message {
        usage: (usage != Usage::default()).then_some(usage),
        interrupted: true,
        ..NewMessage::text(Role::Assistant, content).complete(|| new_id().to_string(), now)
    };
    Stored::new(&message).ok()
}

fn failed(error: CallError, room: impl FnOnce() -> String, now: jiff::Timestamp) -> Stopped {
    let kind = match error.class {
        Class::Cancelled => ErrorKind::Interrupted,
        _ if !error.partial.is_empty() => ErrorKind::Interrupted,
        _ => ErrorKind::ModelUnavailable,
    };
    let too_long = error.class == Class::ContextTooLong;
    let usage = error.usage.map(|usage| *usage).unwrap_or_default();
    let partial = (!error.partial.is_empty()).then(|| cut_off(error.partial, usage.clone(), now));
    let failure = Failure::new(kind, error.message);
    let hint = if too_long {
        room()
    } else {
        error.hint.unwrap_or_else(|| "the message is in the context; send again to go on".to_owned())
    };
    Stopped { failure: failure.hint(hint), partial: partial.flatten(), usage, too_long }
}

fn stopped(failure: Failure) -> Box<Stopped> {
    Box::new(Stopped { failure, partial: None, usage: Usage::default(), too_long: false })
}

/// Why an agent cannot answer.
#[must_use]
pub fn no_model(agent: &str) -> Failure {
    Failure::new(ErrorKind::ModelUnavailable, format!("the agent {agent} has no model"))
        .hint(format!("`chorusctl models` lists them; `chorusctl agent config {agent} model NAME` chooses one"))
}
