//! An agent's state machine: a pure function from an event to a list of effects. No I/O, no clock, no runtime.
//!
//! Many appends may be pending at once; each enters the context when the journal has recorded it. Operations that save,
//! clear or replace the context are exclusive: they wait for the appends before them, and the requests after them wait
//! for the operation.

use core::time::Duration;
use std::collections::VecDeque;
use std::mem;

use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, EventType, Recall, Receipt, Role, Session};
use chorus_session::stored_message::StoredMessage;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::Compaction;
use super::context::{Context, Deadline, PageBudget, PageRange, context_from_head, read_page};
use super::effect::{Append, ContextHead, Effect, TurnMarker};
use super::event::{
    AgentCommand, AppendOutcome, CommandOutcome, ContextPage, Event, Request, RequestId, RequestMeta, Restore, Resume,
};
use super::interruption_reason::Interruption;
use super::partial_load::PartialLoad;
use super::resend_after_failure::UnansweredTurn;
use super::turn::{EventTime, OpenTurn, Turn};
use super::turn_queue::QueuedTurn;
use super::turn_resumption::ResumableTurn;

/// Maximum number of pending appends.
const MAX_PENDING_APPENDS: usize = 1024;

/// Maximum number of appends that wait for tool results.
const MAX_PARKED_APPENDS: usize = 256;

/// An agent's live state.
#[derive(Debug, Default)]
pub struct State {
    pub(super) context: Option<Context>,
    /// The context that the first appends will create, until one of them is durable.
    new_context: Option<ContextHead>,
    /// Number of the next record.
    pub(super) next_record: u32,
    pub(super) pending_appends: VecDeque<PendingAppend>,
    /// An exclusive request that waits for the appends before it.
    pub(super) waiting_exclusive: Option<Request>,
    pub(super) exclusive: Option<ExclusiveOp>,
    /// The error with which loading the context failed.
    pub(super) load_error: Option<Error>,
    /// Set while the first messages of a large context are still being loaded.
    pub(super) partial_load: Option<PartialLoad>,
    pub(super) turn: Option<Turn>,
    /// Turns that wait for the running one.
    pub(super) queued_turns: VecDeque<QueuedTurn>,
    /// Requests that wait until the open tool calls have their results.
    parked: VecDeque<(RequestMeta, AgentCommand)>,
    /// Events of the turn that arrived during an exclusive operation.
    deferred_events: VecDeque<Event>,
    /// A turn that was running when the daemon ended.
    open_turn: Option<OpenTurn>,
    /// A turn that can be resumed, since nothing was done in it before the daemon ended or the store was gone.
    pub(super) resumable_turn: Option<ResumableTurn>,
    pub(super) unanswered: Option<UnansweredTurn>,
}

/// An append that the journal has not confirmed yet.
#[derive(Debug)]
pub(super) struct PendingAppend {
    pub owner: AppendOwner,
    pub head: ContextHead,
    pub messages: Vec<StoredMessage>,
    pub at: Timestamp,
    pub deadline: Option<Deadline>,
}

/// The owner of an append, which handles its completion.
#[derive(Debug)]
pub(super) enum AppendOwner {
    Request(RequestId),
    /// The turn may be over when the append completes.
    Turn(Uuid),
    /// The results that close a turn which was running when the daemon ended.
    OpenTurn,
    /// A compaction, which has no messages.
    Compaction(Box<Compaction>),
    /// The passages that were recalled, which have no messages either.
    Recall(Box<Recall>),
}

/// An exclusive operation in progress.
#[derive(Debug)]
pub(super) enum ExclusiveOp {
    Writing { request: RequestId, after: AfterSave },
    Ending { request: RequestId, reply: CommandOutcome, notice: Option<Effect> },
    Replacing { request: RequestId, context: Box<Context>, replacement: Replacement, saved_first: Option<Box<Session>> },
    Changing { request: RequestId, context: Box<Context>, reply: CommandOutcome },
    Materialising { request: RequestId, session: Uuid },
    Held,
}

/// The context that takes the place of the current one.
#[derive(Debug)]
pub(super) struct Replacement {
    /// Id and name of the restored session, for the event that follows. A resumed session is announced with its commit.
    pub restored: Option<(Uuid, String)>,
    /// Number of the new context's next record.
    pub next_record: u32,
    /// Receipt of the compaction, if this is one.
    pub receipt: Option<Box<Receipt>>,
}

/// What follows a save.
#[derive(Debug)]
pub(super) enum AfterSave {
    Reply,
    Compact,
    Clear,
    ClearWith { discarded: u64 },
    Restore(Box<(ContextHead, Box<Restore>)>),
    Resume(Box<(ContextHead, Box<Resume>)>),
    ReplySavedIfUnsaved { end: bool },
    Expire { timeout: Duration },
}

impl State {
    /// Returns the state of an agent whose context was loaded.
    #[must_use]
    pub fn recovered(context: Context, next_record: u32, open_turn: Option<OpenTurn>) -> Self {
        Self { context: Some(context), next_record, open_turn, ..Self::default() }
    }

    /// Returns the state of an agent whose context could not be loaded. It can only be cleared or replaced.
    #[must_use]
    pub fn unreadable(context: Context, failure: Error) -> Self {
        Self { context: Some(context), load_error: Some(failure), ..Self::default() }
    }

    /// Whether another request can be accepted now.
    #[must_use]
    pub fn accepts_requests(&self) -> bool {
        self.exclusive.is_none()
            && self.waiting_exclusive.is_none()
            && self.pending_appends.len() < MAX_PENDING_APPENDS
            && !self.holds_request()
    }

    /// Whether there is no context and nothing in progress, so that no actor is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.context.is_none() && self.is_quiescent()
    }

    /// Whether the context could not be loaded and no operation that works without it is in progress.
    #[must_use]
    pub fn is_unreadable_and_idle(&self) -> bool {
        self.load_error.is_some()
            && self.exclusive.is_none()
            && self.waiting_exclusive.is_none()
            && self.pending_appends.is_empty()
    }

    /// Whether nothing is in progress, so that the journal holds the whole state.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        let under_way =
            self.exclusive.is_some() || self.waiting_exclusive.is_some() || self.turn.is_some() || self.is_loading();
        let waits = self.queued_turns.is_empty() && self.parked.is_empty() && !self.has_turn_to_retry();
        !under_way && self.pending_appends.is_empty() && waits
    }

    /// Returns the live context.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Handles an event and returns the effects to carry out.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.dispatch(event, &mut effects);
        while self.exclusive.is_none()
            && let Some(event) = self.deferred_events.pop_front()
        {
            self.dispatch(event, &mut effects);
        }
        let turn_lets =
            |request: &mut Request| self.turn.is_none() || Interruption::of_command(&request.command).is_none();
        if self.pending_appends.is_empty()
            && self.exclusive.is_none()
            && let Some(request) = self.waiting_exclusive.take_if(turn_lets)
        {
            self.start_exclusive(request, &mut effects);
        }
        self.start_next_turn(&mut effects);
        effects
    }

    fn dispatch(&mut self, event: Event, effects: &mut Vec<Effect>) {
        let of_turn =
            matches!(event, Event::ModelCalled { .. } | Event::CompactionPlanned { .. } | Event::Recalled { .. })
                || matches!(event, Event::ToolEnded(_) | Event::TurnClosed { .. });
        if of_turn && self.exclusive.is_some() {
            // The exclusive operation works on a copy of the context.
            self.deferred_events.push_back(event);
            return;
        }
        match event {
            Event::Request(request) => {
                self.close_open_turn(&request.meta, effects);
                self.update_settings(&request.meta.settings);
                self.handle_request(*request, effects);
            }
            Event::ModelCalled { turn_step: of, moment, result } => self.on_model_called(of, moment, *result, effects),
            Event::CompactionPlanned { turn_step: of, moment, compaction } => {
                self.start_compaction(of, moment, compaction, effects)
            }
            Event::Recalled { turn_step: of, moment, recall } => self.start_recall(of, moment, *recall, effects),
            Event::ToolEnded(ended) => self.on_tool_ended(*ended, effects),
            Event::TurnClosed { turn, moment, result } => self.on_turn_closed(turn, moment, result, effects),
            Event::ContextLoaded(result) => self.on_context_loaded(*result, effects),
            Event::Appended(result) => self.on_appended(result, effects),
            Event::SessionWritten(result) => self.on_session_written(result, effects),
            Event::ContextEnded(result) => self.on_context_ended(result, effects),
            Event::ContextReplaced(result) => self.on_context_replaced(result, effects),
            Event::MessagesMaterialised(result) => self.on_messages_materialised(result, effects),
            Event::EditRecorded(result) => self.on_edit_recorded(result, effects),
            Event::HoldReleased => self.exclusive = None,
        }
    }

    /// Closes a turn that a crash left open, before the first request is handled.
    fn close_open_turn(&mut self, asked: &RequestMeta, effects: &mut Vec<Effect>) {
        let (Some(left), Some(begin)) = (self.open_turn.take(), self.live_head()) else { return };
        let mark = TurnMarker::Close { turn: left.turn, key: None, answer: None };
        let data = json!({"turn_id": left.turn, "reason": "the daemon stopped during the turn"});
        effects.push(Effect::EmitEvent(EventType::TurnInterrupted, data));
        let last = self.context.as_ref().and_then(|context| context.messages.last());
        self.resumable_turn =
            last.filter(|last| last.role() == Role::User).map(|_| ResumableTurn::after_crash(left.turn));
        if left.results.is_empty() {
            effects.push(Effect::CloseTurn { context: begin.context, marker: mark });
            return;
        }
        let begin = ContextHead { agent: asked.settings.id, ..begin };
        let (first, at, deadline) = (self.next_record, asked.now, begin.deadline);
        self.next_record = first.saturating_add(u32::try_from(left.results.len()).unwrap_or(u32::MAX));
        let messages = left.results;
        let agent_name = asked.settings.name.clone();
        let copy = messages.clone();
        let owner = AppendOwner::OpenTurn;
        self.pending_appends.push_back(PendingAppend { owner, head: begin.clone(), messages, at, deadline });
        let append = Append {
            head: begin,
            agent_name,
            first_record: first,
            messages: copy,
            at,
            deadline,
            key: None,
            marker: Some(mark),
        };
        effects.push(Effect::Append(Box::new(append)));
    }

    pub(super) fn handle_request(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let Some(Request { meta: asked, command: verb }) = self.admit_or_hold(request) else { return };
        match verb {
            AgentCommand::Append { .. } | AgentCommand::Send(_) if self.load_error.is_some() => {
                let failure = self.load_error.clone().unwrap_or_else(Error::busy);
                effects.push(Effect::Reply(asked.id, Err(failure)));
            }
            AgentCommand::Append { .. } if self.has_open_calls() && self.parked.len() >= MAX_PARKED_APPENDS => {
                effects.push(Effect::Reply(asked.id, Err(Error::busy())));
            }
            AgentCommand::Append { .. } if self.has_open_calls() => self.parked.push_back((asked, verb)),
            AgentCommand::Append { messages, key } => {
                let (at, deadline) = (asked.now, deadline_of_request(&asked));
                let begin = self.live_or_new_head(&asked);
                let first = self.next_record;
                self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
                let copy = messages.clone();
                let owner = AppendOwner::Request(asked.id);
                self.pending_appends.push_back(PendingAppend { owner, head: begin.clone(), messages, at, deadline });
                let agent_name = asked.settings.name.clone();
                let append = Append {
                    head: begin,
                    agent_name,
                    first_record: first,
                    messages: copy,
                    at,
                    deadline,
                    key,
                    marker: None,
                };
                effects.push(Effect::Append(Box::new(append)));
            }
            // A reader must not see calls whose missing results are just being recorded.
            AgentCommand::ReadPage { .. } | AgentCommand::Window | AgentCommand::Draft
                if self.pending_appends.iter().any(|pending| matches!(pending.owner, AppendOwner::OpenTurn)) =>
            {
                self.parked.push_back((asked, verb));
            }
            AgentCommand::Window => {
                let window = || CommandOutcome::Window(Box::new(self.next_call(&asked.settings)));
                let reply = self.load_error.clone().map_or_else(|| Ok(window()), Err);
                effects.push(Effect::Reply(asked.id, reply));
            }
            AgentCommand::Draft => {
                let draft = || CommandOutcome::Draft(self.draft_context(&asked).map(Box::new));
                let reply = self.load_error.clone().map_or_else(|| Ok(draft()), Err);
                effects.push(Effect::Reply(asked.id, reply));
            }
            AgentCommand::ReadPage { pick, budget: room } => {
                effects.push(Effect::Reply(asked.id, self.read_page(pick, room)))
            }
            AgentCommand::Send(send) => self.request_turn(asked, *send, effects),
            AgentCommand::Cancel(which) => self.cancel(asked.id, which, effects),
            AgentCommand::CancelQueued(turn) => {
                let taken = self.withdraw_turn(turn, effects).then_some(turn);
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Cancelled(taken))));
            }
            AgentCommand::CheckReplaceable if self.turn.is_none() => {
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done)))
            }
            AgentCommand::EndTurns => {
                self.interrupt_turn(Interruption::DaemonStop, effects);
                self.refuse_queued(Interruption::DaemonStop, effects);
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done)));
            }
            AgentCommand::EndTurnWithoutStore => {
                self.interrupt_turn(Interruption::StoreLost, effects);
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done)));
            }
            AgentCommand::Wake => effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done))),
            verb if self.turn.is_some() && is_refused_during_turn(&verb) => {
                let name = &asked.settings.name;
                let running = match &asked.conversation {
                    Some(conversation) => format!("a turn is running in the conversation {conversation}"),
                    None => format!("a turn of {name} is running"),
                };
                let failure = Error::new(ErrorKind::Busy, running)
                    .hint(format!("wait until it ends, or cancel it with `chorusctl cancel {name}`"));
                effects.push(Effect::Reply(asked.id, Err(failure)));
            }
            verb => {
                if let Some(why) = Interruption::of_command(&verb) {
                    self.interrupt_turn(why, effects);
                    self.refuse_queued(why, effects);
                }
                self.waiting_exclusive = Some(Request { meta: asked, command: verb });
            }
        }
    }

    /// Handles the appends that waited for tool results.
    pub(super) fn resume_parked(&mut self, effects: &mut Vec<Effect>) {
        for (asked, verb) in mem::take(&mut self.parked) {
            self.handle_request(Request { meta: asked, command: verb }, effects);
        }
    }

    /// Returns the head of the live context, without the agent's id.
    pub(super) fn live_head(&self) -> Option<ContextHead> {
        let context = self.context.as_ref()?;
        Some(ContextHead {
            context: context.number,
            agent: Uuid::nil(),
            started_at: context.started_at,
            deadline: context.deadline,
            parent: context.parent,
        })
    }

    /// Returns the head of the context that messages are appended to: the live one, or one that is to be created.
    pub(super) fn live_or_new_head(&mut self, asked: &RequestMeta) -> ContextHead {
        if let Some(begin) = self.live_head() {
            return ContextHead { agent: asked.settings.id, ..begin };
        }
        self.new_context
            .get_or_insert_with(|| {
                self.next_record = 0;
                ContextHead {
                    context: asked.new_context,
                    agent: asked.settings.id,
                    started_at: asked.now,
                    deadline: deadline_of_request(asked),
                    parent: None,
                }
            })
            .clone()
    }

    fn read_page(&self, pick: PageRange, room: PageBudget) -> Result<CommandOutcome> {
        if let Some(failure) = &self.load_error {
            return Err(failure.clone());
        }
        let Some(context) = &self.context else {
            return Ok(CommandOutcome::Page(ContextPage {
                messages: Vec::new(),
                working_set: Box::default(),
                info: None,
                next: None,
            }));
        };
        let first = context.first_in_memory();
        let pick = match pick {
            PageRange::From { offset, limit } => PageRange::From { offset: offset.saturating_sub(first), limit },
            last @ PageRange::Last(_) => last,
        };
        let (messages, next) = read_page(&context.messages, pick, room);
        let next = next.map(|next| first + next);
        let working_set = Box::new(context.working_set.clone());
        Ok(CommandOutcome::Page(ContextPage { messages, working_set, info: Some(context.info()), next }))
    }

    fn on_appended(&mut self, result: Result<AppendOutcome>, effects: &mut Vec<Effect>) {
        let Some(pending) = self.pending_appends.pop_front() else { return };
        if matches!(result, Ok(AppendOutcome::Added(_))) {
            self.new_context = None;
            self.context.get_or_insert_with(|| context_from_head(&pending.head)).push(
                pending.messages,
                pending.at,
                pending.deadline,
            );
        }
        if self.pending_appends.is_empty() {
            // Either the new context exists now, or every append that would have created it has failed.
            self.new_context = None;
        }
        match (pending.owner, result) {
            (AppendOwner::Turn(turn), Ok(AppendOutcome::DuplicateTurn(known))) => {
                self.on_turn_appended(turn, Ok(Some(known)), effects)
            }
            (AppendOwner::Turn(turn), result) => self.on_turn_appended(turn, result.map(|_| None), effects),
            (AppendOwner::Compaction(compaction), result) => {
                self.on_compaction_recorded(*compaction, result.map(drop), effects)
            }
            (AppendOwner::Recall(recall), result) => self.on_recall_recorded(*recall, result.is_ok(), effects),
            (AppendOwner::OpenTurn, _) => self.resume_parked(effects),
            (AppendOwner::Request(request), Ok(AppendOutcome::Added(answer) | AppendOutcome::Duplicate(answer))) => {
                effects.push(Effect::Reply(request, Ok(CommandOutcome::Appended(answer))));
            }
            (AppendOwner::Request(request), Err(failure)) => effects.push(Effect::Reply(request, Err(failure))),
            // Only turns have markers, and only compactions and what was recalled have no messages.
            (AppendOwner::Request(request), Ok(AppendOutcome::DuplicateTurn(_) | AppendOutcome::RecordAppended)) => {
                effects.push(Effect::Reply(request, Err(Error::internal("an append with the key of a turn"))));
            }
        }
    }

    /// Drops the context and everything that belongs to it, but not the queued requests.
    pub(super) fn reset(&mut self) {
        *self = Self {
            exclusive: mem::take(&mut self.exclusive),
            waiting_exclusive: mem::take(&mut self.waiting_exclusive),
            queued_turns: mem::take(&mut self.queued_turns),
            ..Self::default()
        };
    }
}

/// Returns the idle deadline that follows from a request.
pub(super) fn deadline_of_request(asked: &RequestMeta) -> Option<Deadline> {
    deadline_after(&asked.settings, EventTime { now: asked.now, ticks: asked.ticks })
}

/// Returns the idle deadline that follows from activity at `moment`.
pub(super) fn deadline_after(settings: &AgentSettings, moment: EventTime) -> Option<Deadline> {
    let timeout = settings.idle_timeout?;
    Some(Deadline { due: moment.ticks.after(timeout), at: moment.now.checked_add(timeout).ok()? })
}

/// Whether a command is refused during a turn because it would take the context away from it.
fn is_refused_during_turn(verb: &AgentCommand) -> bool {
    matches!(
        verb,
        AgentCommand::Clear { .. } | AgentCommand::Restore(_) | AgentCommand::Rewind { .. } | AgentCommand::Unrewind
    ) || matches!(
        verb,
        AgentCommand::SaveForCompaction
            | AgentCommand::CheckReplaceable
            | AgentCommand::Resume(_)
            | AgentCommand::Uncompact
            | AgentCommand::UndoContinuation(_)
    ) || matches!(verb, AgentCommand::Save { clear: true, .. } | AgentCommand::Hold { ends_turn: None })
}

/// Returns the error that there is nothing to save or to rewind.
pub(super) fn empty_context_error(asked: &RequestMeta) -> Error {
    let what = match &asked.conversation {
        Some(conversation) => format!("the conversation {conversation} is empty"),
        None => format!("the context of {} is empty", asked.settings.name),
    };
    Error::new(ErrorKind::NothingToSave, what).hint("send a message first, or restore a session: chorusctl history")
}
