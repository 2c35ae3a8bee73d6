//! A turn: from a user's message to the model's final reply, with the tool calls in between. Part of the state machine.
//!
//! Each step is in the journal before the next one starts. The completions of model and tool calls carry their turn and
//! step; those that come too late are dropped.

use std::sync::Arc;

use chorus_base::Ticks;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{EventType, ToolCall, Usage};
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::compaction::CompactionMode;
use super::context::Context;
use super::effect::{Append, CallModel, ContextHead, Effect, TurnMarker};
use super::event::{CommandOutcome, PriorTurn, RequestId, RequestMeta};
use super::interruption_reason::Interruption;
pub use super::model_outcome::{ModelFailure, ModelReply};
use super::state::{AppendOwner, PendingAppend, State, deadline_after};
use super::tool_budget::ToolBudget;
use super::tool_calls::CallResults;
use super::turn_queue::QueuedTurn;
use super::turn_resumption::{self, TurnResumption};
use super::turn_sink::TurnSink;
use super::usage_sum::add_usage;
use super::{AgentSettings, continuation, recall};

/// A message that requests a turn.
#[derive(Debug)]
pub struct TurnRequest {
    /// Id of the turn that this message starts, unless its key is known, or an interrupted turn is resumed.
    pub turn: Uuid,
    pub message: StoredMessage,
    pub key: Option<String>,
    /// The model of this turn, instead of the agent's.
    pub model: Option<String>,
    /// If the key is known and the daemon ended before anything was done in that turn, resume it.
    pub resume_if_unstarted: bool,
    /// The sender sends the message again, with its key, until it is answered.
    pub is_repeated: bool,
    /// Where the turn's events go. The actor uses it, the state machine does not.
    pub sink: TurnSink,
    /// The requester of the turn.
    pub requester: Requester,
}

/// The running turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: Uuid,
    /// The requests that wait for the turn to end.
    pub(super) waiting_requests: Vec<RequestId>,
    pub(super) key: Option<String>,
    /// The message, if an interrupted turn with the same key may be resumed.
    pub(super) resumption: Option<TurnResumption>,
    pub(super) is_repeated: bool,
    pub(super) requester: Requester,
    /// The model of this turn, instead of the agent's.
    pub(super) model: Option<String>,
    pub(super) settings: Arc<AgentSettings>,
    pub(super) started_at: Ticks,
    /// Number of the model call; a call that had to be compacted first counts as one of its own.
    pub(super) step: u32,
    /// Index of the turn's message in the context, once it is there.
    pub(super) first_message: Option<usize>,
    pub(super) phase: TurnPhase,
    pub(super) interruption: Option<Interruption>,
    pub(super) tool_budget: ToolBudget,
    /// The error of a tool because of which the turn ends.
    pub(super) fatal: Option<Error>,
    /// Requests that joined with the same key in the middle of a reply. They receive events from the next reply on,
    /// since half a reply is of no use.
    late_listeners: Vec<RequestId>,
    /// The window was already made smaller because it was too long.
    pub(super) reduced: bool,
    /// Whether to compact the window before the next call.
    pub(super) compaction_mode: CompactionMode,
    /// The same of the running call.
    pub(super) call_mode: CompactionMode,
    /// Passages were searched for the window as it is.
    pub(super) recall_tried: bool,
    pub(super) usage: Usage,
    pub(super) calls: Vec<ToolCall>,
}

/// Phase of a turn: the event that it waits for.
#[derive(Debug)]
pub(super) enum TurnPhase {
    /// The journal is recording the message.
    RecordingMessage,
    CallingModel,
    /// The journal is recording a compaction.
    RecordingCompaction,
    /// The journal is recording what was recalled.
    RecordingRecall,
    /// The journal is recording the model's reply; these tool calls run next.
    RecordingReply(Vec<ToolCall>),
    /// Tool calls whose results are not yet recorded.
    RunningTools(CallResults),
    /// The journal is recording the final reply.
    RecordingEnd(Box<Result<String>>),
}

impl Turn {
    /// Adds a request that waits for the turn to end.
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

/// When an event came in.
#[derive(Debug, Clone, Copy)]
pub struct EventTime {
    pub now: Timestamp,
    pub ticks: Ticks,
}

impl Turn {
    /// Whether the turn is waiting for the model call of this step.
    pub(crate) fn is_calling_step(&self, step: u32) -> bool {
        self.step == step && matches!(self.phase, TurnPhase::CallingModel)
    }

    /// Starts to wait for a compaction. Returns false if the turn is not waiting for the model call of this step.
    pub(crate) fn begin_compaction(&mut self, step: u32) -> bool {
        let calls = self.is_calling_step(step);
        if calls {
            self.phase = TurnPhase::RecordingCompaction;
        }
        calls
    }
}

impl State {
    /// Whether a turn runs.
    #[cfg(test)]
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether a turn runs and is not waiting for its tools.
    #[must_use]
    pub fn is_waiting_for_model(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !matches!(turn.phase, TurnPhase::RunningTools(_)))
    }

    /// Applies settings that may have changed in the middle of the turn.
    pub(super) fn update_settings(&mut self, settings: &Arc<AgentSettings>) {
        if let Some(turn) = &mut self.turn {
            turn.settings = settings.clone();
        }
    }

    /// Whether tool calls lack their results, so that no message may be appended now.
    pub(super) fn has_open_calls(&self) -> bool {
        let phase = self.turn.as_ref().map(|turn| &turn.phase);
        matches!(phase, Some(TurnPhase::RunningTools(_)))
            || matches!(phase, Some(TurnPhase::RecordingReply(calls)) if !calls.is_empty())
    }

    /// Starts a turn, or queues it behind those before it.
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
        let id = self.choose_turn_id(&send);
        effects.push(Effect::BeginTurn(id));
        effects.extend(requests.iter().map(|request| Effect::AddListener(*request)));
        effects.extend(self.queued_turns.iter().flat_map(QueuedTurn::requests).map(Effect::AddApprovalListener));
        let moment = EventTime { now: asked.now, ticks: asked.ticks };
        let mark = TurnMarker::Open { turn: id, key: send.key.clone() };
        self.turn = Some(Turn {
            id,
            waiting_requests: requests,
            key: send.key,
            resumption: send.resume_if_unstarted.then(|| TurnResumption { message: send.message.clone(), moment }),
            is_repeated: send.is_repeated,
            requester: send.requester,
            settings: asked.settings.clone(),
            model: send.model,
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
            call_mode: CompactionMode::IfLong,
            recall_tried: false,
            usage: Usage::default(),
            calls: Vec::new(),
        });
        let messages = if self.is_resent(&send.message) { Vec::new() } else { vec![send.message] };
        let begin = self.live_or_new_head(&asked);
        self.append_in_turn(begin, &asked.settings, messages, moment, Some(mark), effects);
    }

    /// Appends messages of the turn to the journal.
    pub(super) fn append_in_turn(
        &mut self,
        begin: ContextHead,
        settings: &AgentSettings,
        messages: Vec<StoredMessage>,
        moment: EventTime,
        mark: Option<TurnMarker>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.id) else { return };
        let first = self.next_record;
        self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
        let deadline = deadline_after(settings, moment);
        self.pending_appends.push_back(PendingAppend {
            owner: AppendOwner::Turn(turn),
            head: begin.clone(),
            messages: messages.clone(),
            at: moment.now,
            deadline,
        });
        let agent_name = settings.name.clone();
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

    /// Appends a message of the turn to the live context.
    pub(super) fn append_to_context(
        &mut self,
        message: StoredMessage,
        moment: EventTime,
        mark: Option<TurnMarker>,
        effects: &mut Vec<Effect>,
    ) {
        let Some((settings, begin)) = self.turn.as_ref().map(|turn| turn.settings.clone()).zip(self.live_head()) else {
            return;
        };
        let begin = ContextHead { agent: settings.id, ..begin };
        self.append_in_turn(begin, &settings, vec![message], moment, mark, effects);
    }

    /// Handles the completion of an append that belongs to a turn.
    pub(super) fn on_turn_appended(&mut self, of: Uuid, result: Result<Option<PriorTurn>>, effects: &mut Vec<Effect>) {
        // The turn may be over already, because an append before this one failed.
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
                    // Once only: if the model goes on calling, the turn ends and its error says why.
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
            TurnPhase::CallingModel | TurnPhase::RecordingCompaction | TurnPhase::RecordingRecall => {}
        }
    }

    /// Starts the model calls. The turn's message is the last of the context, unless the turn was resumed.
    fn on_turn_started(&mut self, effects: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let id = turn.id;
        let last = self.context.as_ref().map_or(0, |context| context.messages.len().saturating_sub(1));
        turn.first_message.get_or_insert(last);
        effects.push(Effect::EmitEvent(EventType::TurnStarted, json!({"turn_id": id})));
        effects.push(Effect::Broadcast(TurnEvent::Started { turn_id: id }));
        self.call_model_or_end(effects);
    }

    /// Handles a key that was used before: its turn has ended or was interrupted.
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

    /// Makes the next model call, unless the turn has to end.
    pub(super) fn call_model_or_end(&mut self, effects: &mut Vec<Effect>) {
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
        let settings = turn.settings.clone();
        if let Some(context) = &mut self.context {
            context.changes_since_call.clear();
        }
        let call = self.next_call(&settings);
        let Some(turn) = &mut self.turn else { return };
        turn.recall_tried |= call.recall.is_some();
        turn.call_mode = turn.compaction_mode;
        effects.push(Effect::CallModel(Box::new(call)));
        // This mode holds for one call only; the next one may be too long for another reason.
        turn.compaction_mode = CompactionMode::IfLong;
    }

    /// Ends the turn if it was interrupted. Returns whether it was.
    pub(super) fn end_if_interrupted(&mut self, effects: &mut Vec<Effect>) -> bool {
        let cut_off = self.turn.as_ref().and_then(|turn| turn.interruption);
        if let Some(cut_off) = cut_off {
            self.close_turn(None, Err(cut_off.error_for_running_turn()), effects);
        }
        cut_off.is_some()
    }

    /// Returns the next model call, of the running turn or of one that would start with the next message.
    #[must_use]
    pub fn next_call(&self, settings: &Arc<AgentSettings>) -> CallModel {
        let (context, turn) = (self.context.as_ref(), self.turn.as_ref());
        let messages = context.map(|context| context.messages.clone()).unwrap_or_default();
        CallModel {
            turn: turn.map_or(Uuid::nil(), |turn| turn.id),
            step: turn.map_or(0, |turn| turn.step),
            settings: settings.clone(),
            model: turn.and_then(|turn| turn.model.clone()),
            context: context.map_or(ContextNo(0), |context| context.number),
            turn_start: turn.map_or(messages.len(), |turn| turn.first_message.unwrap_or(0)),
            messages,
            working_set: recall::shown_set(context, settings),
            window_start: context.map_or(0, Context::window_start),
            compaction_mode: continuation::effective_compaction_mode(
                context,
                turn.map_or(CompactionMode::IfLong, |turn| turn.compaction_mode),
            ),
            reduced: turn.is_some_and(|turn| turn.reduced),
            recall: self.plan_recall(settings),
            final_answer: turn.and_then(|turn| turn.tool_budget.cutoff()),
        }
    }

    /// Goes on with the model call after the window was compacted.
    pub(super) fn continue_after_compaction(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.phase, TurnPhase::RecordingCompaction)) else {
            return;
        };
        (turn.compaction_mode, turn.recall_tried) = (CompactionMode::Off, false);
        match result {
            Ok(()) => self.call_model_or_end(effects),
            Err(failure) => self.finish_turn(Err(failure), effects),
        }
    }

    /// Handles the completion of a model call.
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
                        // The tools may ask for approvals.
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
                    let note = "conversation too long for the model; retrying with less of it".into();
                    effects.push(Effect::Broadcast(TurnEvent::Note(note)));
                    return self.call_model_or_end(effects);
                }
                let failure = turn.interruption.map_or(stopped.failure, Interruption::error_for_running_turn);
                self.close_turn(stopped.partial.map(|message| (message, moment)), Err(failure), effects);
            }
        }
    }

    /// Ends the running turn or withdraws a queued one.
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

    /// Cancels what the turn is doing.
    pub(super) fn interrupt_turn(&mut self, why: Interruption, effects: &mut Vec<Effect>) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.interruption.is_none()) {
            turn.interruption = Some(why);
            effects.push(Effect::CancelTurn(turn.id));
        }
    }
}

/// A turn that was running when the daemon ended.
#[derive(Debug, Clone)]
pub struct OpenTurn {
    pub turn: Uuid,
    /// Results for the calls that have none.
    pub results: Vec<StoredMessage>,
}
