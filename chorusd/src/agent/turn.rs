//! A turn: from a user's message to the model's last word, with the tools that it calls in between. Part of the state
//! machine.
//!
//! Each step is in the journal before the next begins. Results of calls and tools carry the turn and the step they belong to;
//! what comes late is dropped.

use std::sync::Arc;

use chorus_proto::methods::send::{SendResult, TurnEvent};
use chorus_proto::{EventType, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::CompactionMode;
use super::context::Context;
use super::continuation;
use super::effect::{Append, CallModel, ContextHead, Effect, TurnMarker};
use super::event::{CommandOutcome, PriorTurn, RequestId, RequestMeta};
use super::interruption::Interruption;
pub use super::model_reply::{ModelFailure, ModelReply};
use super::state::{AppendOwner, PendingAppend, State, deadline_after};
use super::tool_budget::ToolBudget;
use super::tool_calls::CallResults;
use super::turn_queue::QueuedTurn;
use super::turn_resumption::{self, TurnResumption};
use super::turn_stream::TurnSink;
use super::usage_sum::add_usage;
use crate::clock::Ticks;
use crate::error::{Error, Result};
use crate::message::{ContextNo, StoredMessage};
use crate::requester::Requester;

/// A message that asks for a turn.
#[derive(Debug)]
pub struct TurnRequest {
    /// Of the turn that it begins, unless its key is known.
    pub turn: Uuid,
    pub message: StoredMessage,
    pub key: Option<String>,
    /// Where its key is known, and the daemon ended before anything was done in that turn, it is done now.
    pub resume_if_unstarted: bool,
    /// Where it is told what is said; not the state machine's.
    pub sink: TurnSink,
    /// Who asked for it.
    pub requester: Requester,
}

/// The turn that runs.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: Uuid,
    /// Whoever waits for its end.
    waiting_requests: Vec<RequestId>,
    key: Option<String>,
    /// Its message, where a turn of its key that was cut off may be gone on with.
    pub(super) resumption: Option<TurnResumption>,
    pub(super) requester: Requester,
    pub(super) settings: Arc<AgentSettings>,
    pub(super) started_at: Ticks,
    /// Number of the model call; one that was compacted before is another.
    pub(super) step: u32,
    /// Where its message stands in the context, once it does.
    pub(super) first_message: Option<usize>,
    pub(super) phase: TurnPhase,
    pub(super) interruption: Option<Interruption>,
    pub(super) tool_budget: ToolBudget,
    /// A tool could not go on: why the turn ends.
    pub(super) fatal: Option<Error>,
    /// Whoever came with its key in the middle of an answer: half of it would be no answer, so they hear the next one.
    late_listeners: Vec<RequestId>,
    /// The window was made smaller once, because it was too long.
    reduced: bool,
    /// Whether it is to be compacted before the next call.
    compaction_mode: CompactionMode,
    usage: Usage,
    calls: Vec<ToolCall>,
}

#[derive(Debug)]
pub(super) enum TurnPhase {
    /// The message is on its way into the journal.
    RecordingMessage,
    CallingModel,
    /// That messages leave the window is on its way into the journal.
    RecordingCompaction,
    /// What the model said is on its way into the journal; these tools are called then.
    RecordingReply(Vec<ToolCall>),
    /// Tools whose results are not in the journal yet.
    RunningTools(CallResults),
    /// The last word is on its way into the journal.
    RecordingEnd(Box<Result<String>>),
}

impl Turn {
    /// One more waits for its end.
    fn add_waiter(&mut self, request: RequestId, effects: &mut Vec<Effect>) {
        self.waiting_requests.push(request);
        if !matches!(self.phase, TurnPhase::RecordingMessage) {
            effects.push(Effect::SendTo(request, TurnEvent::Started { turn_id: self.id }));
        }
        if matches!(self.phase, TurnPhase::CallingModel) {
            self.late_listeners.push(request);
        } else {
            effects.push(Effect::AddListener(request));
        }
    }
}

/// When something came in.
#[derive(Debug, Clone, Copy)]
pub struct EventTime {
    pub now: Timestamp,
    pub ticks: Ticks,
}

impl Turn {
    /// Whether it waits for this call.
    pub fn is_calling_step(&self, step: u32) -> bool {
        self.step == step && matches!(self.phase, TurnPhase::CallingModel)
    }

    /// Waits for a compaction, where it is this call that it belongs to.
    pub fn begin_compaction(&mut self, step: u32) -> bool {
        let calls = self.is_calling_step(step);
        if calls {
            self.phase = TurnPhase::RecordingCompaction;
        }
        calls
    }
}

impl State {
    /// Whether a turn runs.
    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether a turn runs whose model is called: while tools run, it waits for them.
    #[must_use]
    pub fn is_waiting_for_model(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !matches!(turn.phase, TurnPhase::RunningTools(_)))
    }

    /// What is known of the agent now: a change in the middle of the turn.
    pub(super) fn update_settings(&mut self, facts: &Arc<AgentSettings>) {
        if let Some(turn) = &mut self.turn {
            turn.settings = facts.clone();
        }
    }

    /// Whether calls lack their results, so that no message may come between.
    pub(super) fn has_open_calls(&self) -> bool {
        let phase = self.turn.as_ref().map(|turn| &turn.phase);
        matches!(phase, Some(TurnPhase::RunningTools(_)))
            || matches!(phase, Some(TurnPhase::RecordingReply(calls)) if !calls.is_empty())
    }

    /// Begins a turn, or lets it wait for those before it.
    pub(super) fn request_turn(&mut self, asked: RequestMeta, send: TurnRequest, effects: &mut Vec<Effect>) {
        if send.key.is_some() {
            let same = |key: &Option<String>| *key == send.key;
            if let Some(turn) = self.turn.as_mut().filter(|turn| same(&turn.key)) {
                turn.add_waiter(asked.id, effects);
                return;
            }
            if let Some(at) = self.queued_turns.iter().position(|queued| same(&queued.request.key)) {
                return self.join_queued_turn(at, asked.id, effects);
            }
        }
        let queued = QueuedTurn { meta: asked, request: send, joined_requests: Vec::new() };
        if self.turn.is_none() && self.queued_turns.is_empty() {
            self.begin_turn(queued, effects);
        } else {
            self.enqueue_turn(queued, effects);
        }
    }

    pub(super) fn begin_turn(&mut self, queued: QueuedTurn, effects: &mut Vec<Effect>) {
        let QueuedTurn { meta: asked, request: send, joined_requests: also } = queued;
        let mut requests = vec![asked.id];
        requests.extend(also);
        effects.push(Effect::BeginTurn(send.turn));
        effects.extend(requests.iter().map(|request| Effect::AddListener(*request)));
        effects.extend(self.queued_turns.iter().flat_map(QueuedTurn::requests).map(Effect::AddApprovalListener));
        let moment = EventTime { now: asked.now, ticks: asked.ticks };
        let mark = TurnMarker::Open { turn: send.turn, key: send.key.clone() };
        self.turn = Some(Turn {
            id: send.turn,
            waiting_requests: requests,
            key: send.key,
            resumption: send.resume_if_unstarted.then(|| TurnResumption { message: send.message.clone(), moment }),
            requester: send.requester,
            settings: asked.settings.clone(),
            started_at: asked.ticks,
            step: 0,
            first_message: None,
            phase: TurnPhase::RecordingMessage,
            interruption: None,
            tool_budget: ToolBudget::default(),
            fatal: None,
            late_listeners: Vec::new(),
            reduced: false,
            compaction_mode: CompactionMode::IfLong,
            usage: Usage::default(),
            calls: Vec::new(),
        });
        let messages = if self.is_resent(&send.message) { Vec::new() } else { vec![send.message] };
        let begin = self.live_or_new_head(&asked);
        self.append_in_turn(begin, &asked.settings, messages, moment, Some(mark), effects);
    }

    /// Journals what is said in the turn.
    pub(super) fn append_in_turn(
        &mut self,
        begin: ContextHead,
        facts: &AgentSettings,
        messages: Vec<StoredMessage>,
        moment: EventTime,
        mark: Option<TurnMarker>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.id) else { return };
        let first = self.next_record;
        self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
        let deadline = deadline_after(facts, moment);
        self.pending_appends.push_back(PendingAppend {
            owner: AppendOwner::Turn(turn),
            head: begin.clone(),
            messages: messages.clone(),
            at: moment.now,
            deadline,
        });
        let agent_name = facts.name.clone();
        let append = Append {
            head: begin,
            agent_name,
            first_record: first,
            messages,
            at: moment.now,
            deadline,
            key: None,
            marker: mark,
        };
        effects.push(Effect::Append(Box::new(append)));
    }

    /// Journals a message that goes on with the context.
    pub(super) fn append_to_context(
        &mut self,
        message: StoredMessage,
        moment: EventTime,
        mark: Option<TurnMarker>,
        effects: &mut Vec<Effect>,
    ) {
        let Some((facts, begin)) = self.turn.as_ref().map(|turn| turn.settings.clone()).zip(self.live_head()) else {
            return;
        };
        let begin = ContextHead { agent: facts.id, ..begin };
        self.append_in_turn(begin, &facts, vec![message], moment, mark, effects);
    }

    /// A message of the turn is in the journal, or is not.
    pub(super) fn on_turn_appended(&mut self, of: Uuid, result: Result<Option<PriorTurn>>, effects: &mut Vec<Effect>) {
        // Of a turn that is over, because something before it could not be kept, this changes nothing.
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.id == of) else { return };
        let known = match result {
            Ok(known) => known,
            Err(failure) => return self.finish_turn(Err(failure), effects),
        };
        if let Some(known) = known {
            return self.reply_to_known_key(known, effects);
        }
        match &mut turn.phase {
            TurnPhase::RecordingMessage => self.on_turn_started(effects),
            TurnPhase::RecordingReply(calls) if calls.is_empty() => self.call_model_or_end(effects),
            TurnPhase::RecordingReply(_) => turn.run_tools(effects),
            TurnPhase::RunningTools(calls) => {
                if calls.on_result_recorded() {
                    turn.phase = TurnPhase::CallingModel;
                    // Once: a model that goes on calling has its turn ended, and why is said then.
                    let word = turn.tool_budget.cutoff().filter(|_| !turn.tool_budget.cutoff_ignored);
                    effects.extend(word.map(|word| Effect::Broadcast(TurnEvent::Note(word.user_note().into()))));
                    self.resume_parked(effects);
                    self.call_model_or_end(effects);
                }
            }
            TurnPhase::RecordingEnd(outcome) => {
                let outcome = std::mem::replace(&mut **outcome, Ok(String::new()));
                self.finish_turn(outcome, effects);
            }
            TurnPhase::CallingModel | TurnPhase::RecordingCompaction => {}
        }
    }

    /// The message of the turn is in the context, as the last where it just came: the model is asked.
    fn on_turn_started(&mut self, effects: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let id = turn.id;
        let last = self.context.as_ref().map_or(0, |context| context.messages.len().saturating_sub(1));
        turn.first_message.get_or_insert(last);
        effects.push(Effect::EmitEvent(EventType::TurnStarted, json!({"turn_id": id})));
        effects.push(Effect::Broadcast(TurnEvent::Started { turn_id: id }));
        self.call_model_or_end(effects);
    }

    /// The key came before: its turn has ended, or was cut off.
    fn reply_to_known_key(&mut self, known: PriorTurn, effects: &mut Vec<Effect>) {
        if self.try_resume_turn(&known, effects) {
            return;
        }
        let Some(turn) = self.turn.take() else { return };
        let answer = known.result.ok_or_else(|| turn_resumption::unanswered_key_error(known.turn));
        for request in turn.waiting_requests {
            effects.push(Effect::Reply(request, answer.clone().map(|answer| CommandOutcome::Sent(Box::new(answer)))));
        }
    }

    /// The next call of the model, unless somebody has ended the turn.
    fn call_model_or_end(&mut self, effects: &mut Vec<Effect>) {
        if self.end_if_interrupted(effects) {
            return;
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(failure) = turn.stop_reason() {
            return self.close_turn(None, Err(failure), effects);
        }
        turn.step += 1;
        turn.phase = TurnPhase::CallingModel;
        effects.extend(turn.late_listeners.drain(..).map(Effect::AddListener));
        let facts = turn.settings.clone();
        let call = self.next_call(&facts);
        effects.push(Effect::CallModel(Box::new(call)));
        let Some(turn) = &mut self.turn else { return };
        // What comes of a compaction is looked at in this call only; the next may be long for another reason.
        turn.compaction_mode = CompactionMode::IfLong;
    }

    /// Ends the turn where somebody has cut it off.
    pub(super) fn end_if_interrupted(&mut self, effects: &mut Vec<Effect>) -> bool {
        let cut_off = self.turn.as_ref().and_then(|turn| turn.interruption);
        if let Some(cut_off) = cut_off {
            self.close_turn(None, Err(cut_off.error_for_running_turn()), effects);
        }
        cut_off.is_some()
    }

    /// What the next call of the model is made of: in the turn that runs, or in one that begins with the next message.
    #[must_use]
    pub fn next_call(&self, facts: &Arc<AgentSettings>) -> CallModel {
        let (context, turn) = (self.context.as_ref(), self.turn.as_ref());
        let messages = context.map(|context| context.messages.clone()).unwrap_or_default();
        CallModel {
            turn: turn.map_or(Uuid::nil(), |turn| turn.id),
            step: turn.map_or(0, |turn| turn.step),
            settings: facts.clone(),
            context: context.map_or(ContextNo(0), |context| context.number),
            turn_start: turn.map_or(messages.len(), |turn| turn.first_message.unwrap_or(0)),
            messages,
            working_set: context.map(|context| context.working_set.clone()).unwrap_or_default(),
            window_start: context.map_or(0, Context::window_start),
            compaction_mode: continuation::effective_compaction_mode(
                context,
                turn.map_or(CompactionMode::IfLong, |turn| turn.compaction_mode),
            ),
            reduced: turn.is_some_and(|turn| turn.reduced),
            final_answer: turn.and_then(|turn| turn.tool_budget.cutoff()),
        }
    }

    /// The window was compacted, or could not be; the model is asked.
    pub(super) fn continue_after_compaction(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.phase, TurnPhase::RecordingCompaction)) else {
            return;
        };
        turn.compaction_mode = CompactionMode::Off;
        match result {
            Ok(()) => self.call_model_or_end(effects),
            Err(failure) => self.finish_turn(Err(failure), effects),
        }
    }

    /// The model has answered, or has not.
    pub(super) fn on_model_called(
        &mut self,
        (id, step): (Uuid, u32),
        moment: EventTime,
        result: Result<ModelReply, Box<ModelFailure>>,
        effects: &mut Vec<Effect>,
    ) {
        let current =
            |turn: &&mut Turn| turn.id == id && turn.step == step && matches!(turn.phase, TurnPhase::CallingModel);
        let Some(turn) = self.turn.as_mut().filter(current) else { return };
        match result {
            Ok(answer) => {
                add_usage(&mut turn.usage, &answer.usage);
                if let Some(note) = answer.note {
                    effects.push(Effect::Broadcast(TurnEvent::Note(note)));
                }
                turn.calls.extend(answer.redacted_calls);
                turn.tool_budget.cutoff_ignored = turn.tool_budget.cutoff().is_some();
                match answer.message {
                    Some(message) if !answer.calls.is_empty() => {
                        // Its tools may ask something.
                        effects.extend(turn.late_listeners.drain(..).map(Effect::AddListener));
                        turn.phase = TurnPhase::RecordingReply(answer.calls);
                        self.append_to_context(message, moment, None, effects);
                    }
                    message => self.close_turn(message.map(|message| (message, moment)), Ok(answer.text), effects),
                }
            }
            Err(stopped) => {
                add_usage(&mut turn.usage, &stopped.usage);
                if stopped.too_long && stopped.partial.is_none() && !turn.reduced && turn.interruption.is_none() {
                    (turn.reduced, turn.compaction_mode) = (true, CompactionMode::Now);
                    let note = "the conversation was longer than the model takes; it is shown less of it".into();
                    effects.push(Effect::Broadcast(TurnEvent::Note(note)));
                    return self.call_model_or_end(effects);
                }
                let failure = turn.interruption.map_or(stopped.failure, Interruption::error_for_running_turn);
                self.close_turn(stopped.partial.map(|message| (message, moment)), Err(failure), effects);
            }
        }
    }

    /// Ends the turn that runs, or one that waits.
    pub(super) fn cancel(&mut self, request: RequestId, which: Option<Uuid>, effects: &mut Vec<Effect>) {
        if which.is_some_and(|turn| self.withdraw_turn(turn, effects)) {
            effects.push(Effect::Reply(request, Ok(CommandOutcome::Cancelled(which))));
            return;
        }
        let running = self.turn.as_ref().map(|turn| turn.id).filter(|id| which.is_none_or(|which| which == *id));
        if running.is_some() {
            self.interrupt_turn(Interruption::Cancelled, effects);
        }
        effects.push(Effect::Reply(request, Ok(CommandOutcome::Cancelled(running))));
    }

    /// Tells whatever the turn has under way to end.
    pub(super) fn interrupt_turn(&mut self, why: Interruption, effects: &mut Vec<Effect>) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.interruption.is_none()) {
            turn.interruption = Some(why);
            effects.push(Effect::CancelTurn(turn.id));
        }
    }

    /// Journals the last word, where there is one, and that the turn is over.
    fn close_turn(
        &mut self,
        last: Option<(StoredMessage, EventTime)>,
        outcome: Result<String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let id = turn.id;
        let answer = outcome.as_ref().ok().map(|reply| SendResult {
            reply: reply.clone(),
            turn_id: id,
            usage: turn.usage.clone(),
            tool_calls: turn.calls.clone(),
        });
        let mark = TurnMarker::Close { turn: id, key: turn.key.clone(), answer: answer.map(Box::new) };
        turn.phase = TurnPhase::RecordingEnd(Box::new(outcome));
        match (last, self.context.as_ref().map(|context| context.number)) {
            (Some((message, moment)), _) => self.append_to_context(message, moment, Some(mark), effects),
            (None, Some(context)) => effects.push(Effect::CloseTurn { context, marker: mark }),
            (None, None) => self.on_turn_appended(id, Ok(None), effects),
        }
    }

    /// It is in the journal that a turn is over which had no more to say, or is not.
    pub(super) fn on_turn_closed(
        &mut self,
        of: Uuid,
        moment: EventTime,
        result: Result<()>,
        effects: &mut Vec<Effect>,
    ) {
        let ended = self.turn.as_ref().filter(|turn| turn.id == of && result.is_ok());
        if let Some((facts, context)) = ended.map(|turn| turn.settings.clone()).zip(self.context.as_mut()) {
            // No message sets the timer, and in the turn it may have rung in vain.
            context.deadline = deadline_after(&facts, moment);
            effects.push(Effect::SetDeadline { context: context.number, deadline: context.deadline });
        }
        self.on_turn_appended(of, result.map(|()| None), effects);
    }

    /// The turn is over.
    fn finish_turn(&mut self, outcome: Result<String>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.take() else { return };
        let id = turn.id;
        self.record_answered(turn.first_message.unwrap_or(0), outcome.is_ok());
        if matches!(turn.phase, TurnPhase::RunningTools(_)) {
            // What runs is of no use to anybody any more.
            effects.push(Effect::CancelTurn(id));
        }
        let result = match outcome {
            Ok(reply) => {
                effects.push(Effect::EmitEvent(EventType::TurnFinished, json!({"turn_id": id, "usage": turn.usage})));
                Ok(SendResult { reply, turn_id: id, usage: turn.usage, tool_calls: turn.calls })
            }
            Err(failure) => {
                let data = json!({"turn_id": id, "reason": failure.message});
                effects.push(Effect::EmitEvent(EventType::TurnInterrupted, data));
                Err(failure)
            }
        };
        for request in turn.waiting_requests {
            effects.push(Effect::Reply(request, result.clone().map(|result| CommandOutcome::Sent(Box::new(result)))));
        }
        self.resume_parked(effects);
    }
}

/// What a turn left open when the daemon ended in it.
#[derive(Debug, Clone)]
pub struct OpenTurn {
    pub turn: Uuid,
    /// Results for the calls that have none.
    pub results: Vec<StoredMessage>,
}
