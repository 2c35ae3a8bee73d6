//! The task of one active agent: passes requests and completions to the state machine and carries out its effects.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use chorus_agent_core::context::Deadline;
use chorus_agent_core::effect::Effect;
use chorus_agent_core::event::{AgentCommand, AppendOutcome, CommandOutcome, Event, Request, RequestId, RequestMeta};
use chorus_agent_core::interruption_reason::Interruption;
use chorus_agent_core::state::State;
use chorus_agent_core::turn_sink::{TurnSink, TurnSinks};
use chorus_agent_core::window::WindowBudget;
use chorus_agent_core::{AgentSettings, continuation};
use chorus_base::Ticks;
use chorus_base::error::{Error, MAYBE_STORED_HINT, Result};
use chorus_journal::{ContextRow, Continuation, JournalAppendOutcome, NewEvent, SessionReference};
use chorus_proto::{ErrorKind, EventType};
use chorus_session::conversation::ConversationKey;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::command::{CommandReply, HoldGuard};
use super::eviction::{self, EVICT_AFTER};
use super::journal_records::{
    from_journal_outcome, to_journal_append, to_journal_edit, to_journal_head, to_journal_marker, to_json_bytes,
    trailing_records,
};
use super::prompt_size::ConversationSize;
use super::registry::Registry;
use super::turn_io::TurnIo;
use super::turn_priority::TurnGuard;
use super::{checkpoint_on_save, context_loader, expiry_notice, model_call, session_save};

mod turn_work;

/// A command on its way to an actor.
#[derive(Debug)]
pub(super) struct Envelope {
    /// Boxed, because a mailbox reserves space for some envelopes even while it is empty.
    pub(super) command: Box<AgentCommand>,
    /// Set by a caller that has already removed the agent from the index.
    pub(super) settings: Option<Arc<AgentSettings>>,
    pub(super) reply: oneshot::Sender<Result<CommandReply>>,
}

/// The actor of one conversation of an agent.
#[derive(Debug)]
pub(super) struct Actor {
    conversation: ConversationKey,
    /// The agent's name at the last request.
    name: String,
    /// The conversation's name at the last request; `None` for `main`.
    conversation_name: Option<String>,
    window: WindowBudget,
    /// Size of what the next request would send of the context.
    prompt_size: Option<ConversationSize>,
    state: State,
    mailbox: mpsc::Receiver<Envelope>,
    registry: Arc<Registry>,
    replies: HashMap<RequestId, oneshot::Sender<Result<CommandReply>>>,
    next_request: RequestId,
    /// Time of the last request.
    last_request_at: Ticks,
    /// The context is evicted as soon as nothing is in progress, unless a request comes first.
    evictable: bool,
    /// Receives the events of a turn, for each pending request.
    sinks: HashMap<RequestId, TurnSink>,
    /// The turn that began last.
    turn: Option<TurnIo>,
    /// Held while the turn calls its model.
    turn_guard: Option<TurnGuard>,
    /// Pending appends, in order.
    appends: FuturesOrdered<BoxFuture<'static, Event>>,
    /// All other work in progress.
    running: FuturesUnordered<BoxFuture<'static, Event>>,
}

impl Actor {
    pub(super) fn new(
        conversation: ConversationKey,
        mailbox: mpsc::Receiver<Envelope>,
        registry: Arc<Registry>,
    ) -> Self {
        Self {
            conversation,
            name: String::new(),
            conversation_name: None,
            window: AgentSettings::default().window,
            prompt_size: None,
            state: State::default(),
            mailbox,
            registry,
            replies: HashMap::new(),
            next_request: 0,
            last_request_at: Ticks(0),
            evictable: false,
            sinks: HashMap::new(),
            turn: None,
            turn_guard: None,
            appends: FuturesOrdered::new(),
            running: FuturesUnordered::new(),
        }
    }

    /// Runs until the conversation has nothing in progress and no context. `head` is the context to load first. Waits
    /// for `thawed` before that, if the agent is locked. Ends at once, and writes nothing more, if another daemon takes the
    /// agent over, which cancels `lost`.
    pub(super) async fn run(
        mut self,
        head: Option<ContextRow>,
        thawed: Option<CancellationToken>,
        lost: Option<CancellationToken>,
    ) {
        // Boxed, because only the actors of a cluster have it.
        let mut lost = lost.map(|lost| Box::pin(lost.cancelled_owned()));
        if let Some(thawed) = thawed {
            tokio::select! {
                biased;
                () = until_lost(&mut lost) => return self.abandon(),
                () = thawed.cancelled() => {}
            }
        }
        self.last_request_at = self.registry.clock.ticks();
        self.registry.eviction_timers.set(self.conversation, Some(self.last_request_at.after(EVICT_AFTER)));
        if let Some(head) = head {
            let deadline = self.registry.deadline_after_restart(&head);
            self.load_context(&head, deadline).await;
        }
        loop {
            tokio::select! {
                biased;
                () = until_lost(&mut lost) => return self.abandon(),
                Some(event) = self.appends.next() => self.handle_event(event),
                Some(event) = self.running.next() => self.handle_event(event),
                envelope = self.mailbox.recv(), if self.state.accepts_requests() => match envelope {
                    Some(envelope) => self.handle_envelope(envelope),
                    None => return,
                },
                else => return,
            }
            let retired = if self.state.is_empty() {
                self.registry.retire(self.conversation, &self.mailbox)
            } else {
                // The next request loads an unreadable context again; the obstacle may be gone by then.
                let steps_back = self.state.is_unreadable_and_idle() || (self.evictable && self.state.is_quiescent());
                steps_back && self.registry.unload(self.conversation, &self.mailbox)
            };
            if retired {
                return;
            }
        }
    }

    /// Ends the turn and answers all requests, because another daemon has the agent now.
    fn abandon(&mut self) {
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
        }
        for (_, reply) in self.replies.drain() {
            let _ = reply.send(Err(taken_over()));
        }
        // Of these, nothing was begun.
        let there = self.registry.moved_to(self.conversation.agent);
        self.mailbox.close();
        while let Ok(envelope) = self.mailbox.try_recv() {
            let moved = there.clone().map(|there| Error::elsewhere(&self.name, there));
            let _ = envelope.reply.send(Err(moved.unwrap_or_else(taken_over)));
        }
    }

    /// Loads the context of `head`. Starts a task that loads the first messages of a large one.
    async fn load_context(&mut self, head: &ContextRow, deadline: Option<Deadline>) {
        let (registry, now) = (&self.registry, self.registry.clock.now());
        let whole = registry.is_damaged(head.context);
        // Boxed: loading needs a large future, and this task lives as long as the context.
        let loading = Box::pin(context_loader::load_state(&registry.store, &registry.home, head, deadline, now, whole));
        let (state, remaining) = loading.await;
        self.state = state;
        let Some(remaining) = remaining else {
            return registry.set_damaged(head.context, self.state.is_unreadable_and_idle());
        };
        // A load that fails emits an event with the agent's name, possibly before the first request has set the name.
        let entry = registry.agents.by_id(self.conversation.agent);
        self.name = entry.map(|entry| entry.settings.name.clone()).unwrap_or_default();
        self.conversation_name = registry.agents.conversations.name(self.conversation);
        let loaded = context_loader::finish_loading(registry.clone(), head.clone(), remaining);
        self.running.push(loaded.boxed());
    }

    fn handle_envelope(&mut self, envelope: Envelope) {
        let ticks = self.registry.clock.ticks();
        if matches!(*envelope.command, AgentCommand::Evict) {
            self.check_eviction(ticks);
            let _ = envelope.reply.send(Ok(CommandReply { outcome: CommandOutcome::Done, hold: None }));
            return;
        }
        if matches!(*envelope.command, AgentCommand::Send(_)) && self.registry.is_closing() {
            let _ = envelope.reply.send(Err(Interruption::DaemonStop.error_for_queued_turn()));
            return;
        }
        self.last_request_at = ticks;
        if std::mem::take(&mut self.evictable) {
            self.registry.eviction_timers.set(self.conversation, Some(ticks.after(EVICT_AFTER)));
        }
        let Some(settings) = envelope
            .settings
            .or_else(|| self.registry.agents.by_id(self.conversation.agent).map(|e| e.settings.clone()))
        else {
            let _ = envelope.reply.send(Err(Error::agent_destroyed()));
            return;
        };
        let id = self.next_request;
        self.next_request += 1;
        self.replies.insert(id, envelope.reply);
        if let AgentCommand::Send(send) = &*envelope.command {
            self.sinks.insert(id, send.sink.clone());
        }
        let now = self.registry.clock.now();
        let fresh = self.registry.store.journal.reserve_context_no();
        self.name.clone_from(&settings.name);
        self.conversation_name = self.registry.agents.conversations.name(self.conversation);
        self.window = settings.window;
        let conversation = self.conversation_name.clone();
        let asked = RequestMeta { id, settings, conversation, now, ticks, new_context: fresh };
        self.handle_event(Event::Request(Box::new(Request { meta: asked, command: *envelope.command })));
    }

    /// Marks the context for eviction if no request came since, else sets the eviction timer anew.
    fn check_eviction(&mut self, now: Ticks) {
        let due = self.last_request_at.after(EVICT_AFTER);
        self.evictable = due <= now && self.state.context().is_some_and(eviction::is_evictable);
        if due > now {
            self.registry.eviction_timers.set(self.conversation, Some(due));
        }
    }

    /// Passes an event to the state machine, publishes the new state and carries out the effects.
    fn handle_event(&mut self, event: Event) {
        let effects = self.state.handle(event);
        self.update_turn_priority();
        // A caller that receives its reply must find the matching numbers published.
        let whole = self.state.context().filter(|_| !self.state.is_loading());
        self.prompt_size = whole.map(|context| ConversationSize::measure(context, self.window, self.prompt_size));
        self.registry.publish_context(self.conversation, self.state.context(), self.prompt_size);
        let running = self.state.running_turn();
        if running.is_none()
            && let Some(turn) = &self.turn
        {
            turn.release_slot();
        }
        self.registry.running.set(self.conversation, running);
        let (events, rest): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::EmitEvent(..)));
        self.emit_events(events);
        let has_ended = running.is_none() && self.turn.is_some();
        for effect in rest {
            self.apply_effect(effect);
        }
        // With it go the pieces of its reply. An effect may have begun the next one.
        if has_ended && self.state.running_turn().is_none() {
            self.turn = None;
        }
    }

    fn new_event(&self, at: Timestamp, kind: EventType, data: Value) -> NewEvent {
        NewEvent { at, kind, agent: Some(self.name.clone()), conversation: self.conversation_name.clone(), data }
    }

    /// Emits all events of one step as one journal job.
    fn emit_events(&self, effects: Vec<Effect>) {
        let at = self.registry.clock.now();
        let event = |effect| match effect {
            Effect::EmitEvent(kind, data) => Some(self.new_event(at, kind, data)),
            _ => None,
        };
        let events: Vec<_> = effects.into_iter().filter_map(event).collect();
        let ends = |event: &&NewEvent| matches!(event.kind, EventType::TurnFinished | EventType::TurnInterrupted);
        if let (Some(turn), Some(end)) = (&self.turn, events.iter().find(ends)) {
            self.registry.tools.approvals.end_turn(self.conversation.agent, turn.id);
            let reason = end.data["reason"].as_str().map(str::to_owned);
            self.registry.attached.end_turn(self.conversation, turn.id, reason);
        }
        if !events.is_empty() {
            drop(self.registry.store.journal.emit(events));
        }
    }

    fn apply_effect(&mut self, effect: Effect) {
        let store = &self.registry.store;
        match effect {
            Effect::Append(append) => {
                let heard = self.heard_messages(&append.messages);
                let append = to_journal_append(*append, self.conversation, self.conversation_name.clone());
                let done = store.journal.append(append);
                let (registry, conversation) = (self.registry.clone(), self.conversation);
                let done = done.map(move |result| {
                    if let Ok(JournalAppendOutcome::Added(_)) = &result {
                        heard.iter().for_each(|event| registry.attached.send(conversation, event));
                    }
                    Event::Appended(result.map(from_journal_outcome))
                });
                self.appends.push_back(done.boxed());
            }
            Effect::WriteSession(mut draft) => {
                let registry = self.registry.clone();
                draft.conversation = registry.agents.conversations.reference(self.conversation);
                // In a task of its own, so that writing goes on while this actor is busy.
                let task = chorus_runtime::spawn(async move {
                    let checkpoint = checkpoint_on_save::checkpoint_workspace(&registry, &draft);
                    session_save::save(&registry.store, &registry.summaries, *draft, checkpoint).await
                });
                let written = task
                    .map(|ended| Event::SessionWritten(ended.unwrap_or_else(|e| Err(Error::internal(e.to_string())))));
                self.running.push(written.boxed());
            }
            Effect::EndContext(context) => {
                let ended = store.journal.end_context(context);
                let registry = self.registry.clone();
                let ended = async move {
                    let result = ended.await;
                    if result.is_ok() {
                        registry.trim_context(context);
                    }
                    Event::ContextEnded(result)
                };
                self.running.push(ended.boxed());
            }
            Effect::FreeMessages(messages) => drop(chorus_runtime::spawn_blocking(move || drop(messages))),
            Effect::ReplaceWithSession { old, new, session, totals, appended: added, working_set, restoration } => {
                let (context, head, working_set) =
                    (new.context, to_journal_head(&new, self.conversation), to_json_bytes(&working_set));
                let reference = SessionReference { session, totals, working_set, restoration, added };
                let replaced = store.journal.start_from_session(old, context, head, reference);
                let registry = self.registry.clone();
                let replaced = async move {
                    let result = replaced.await;
                    if let (Ok(()), Some(old)) = (&result, old) {
                        registry.trim_context(old);
                    }
                    Event::ContextReplaced(result)
                };
                self.running.push(replaced.boxed());
            }
            Effect::ReplaceWithMessages {
                old,
                new,
                messages,
                working_set,
                restoration,
                compaction,
                event: (kind, data),
            } => {
                let (context, head, working_set) =
                    (new.context, to_journal_head(&new, self.conversation), to_json_bytes(&working_set));
                let compaction = compaction.as_deref().map(to_json_bytes);
                let event = self.new_event(new.started_at, kind, data);
                let renewed = store.journal.start_continuation(Continuation {
                    old,
                    context,
                    head,
                    working_set,
                    messages,
                    restoration,
                    compaction,
                    event,
                });
                let registry = self.registry.clone();
                let renewed = async move {
                    let result = renewed.await;
                    if let (Ok(()), Some(old)) = (&result, old) {
                        registry.trim_context(old);
                    }
                    Event::ContextReplaced(result)
                };
                self.running.push(renewed.boxed());
            }
            Effect::RecordCompaction { context, record_number: number, compaction, at } => {
                let data = continuation::compaction_event_data(&compaction.receipt, None);
                let event = self.new_event(at, continuation::COMPACTION_EVENT, data);
                let done = store.journal.append_compaction(context, number, to_json_bytes(&*compaction), event);
                self.appends.push_back(
                    done.map(|result| Event::Appended(result.map(|()| AppendOutcome::RecordAppended))).boxed(),
                );
            }
            Effect::RecordRecall { context, record_number: number, working_set } => {
                let done = store.journal.append_working_set(context, number, to_json_bytes(&*working_set));
                let done = done.map(|result| Event::Appended(result.map(|()| AppendOutcome::RecordAppended)));
                self.appends.push_back(done.boxed());
            }
            Effect::Materialise { session, context } => {
                let behind = trailing_records(&context);
                let messages = Arc::unwrap_or_clone(context.messages);
                let done = store.journal.materialise_messages(context.number, messages, session, behind);
                self.running.push(done.map(Event::MessagesMaterialised).boxed());
            }
            Effect::RecordEdit(change) => {
                let done = store.journal.append_edit(to_journal_edit(*change, self.conversation));
                self.running.push(done.map(Event::EditRecorded).boxed());
            }
            // The call enqueues the write. If a crash loses it, the journal only has an older deadline.
            Effect::SetDeadline { context, deadline } => {
                drop(store.journal.set_deadline(context, deadline.map(|deadline| deadline.at)));
            }
            Effect::EmitEvent(..) => self.emit_events(vec![effect]),
            Effect::PostIdleNotice { session, written, timeout } => {
                let (registry, name) = (self.registry.clone(), self.name.clone());
                let conversation = self.conversation_name.clone();
                self.registry.spawn(async move {
                    expiry_notice::post(&registry, (name, conversation), session, written, timeout).await;
                });
            }
            Effect::Summarise { session, settings } => self.registry.summaries.start(session, settings),
            Effect::Reply(request, result) => self.reply(request, result),
            Effect::CallModel(asked) => self.call_model(*asked),
            Effect::RunTools(run) => self.run_tools(*run),
            Effect::CancelTurn(turn) => {
                if let Some(running) = self.turn.as_ref().filter(|running| running.id == turn) {
                    running.cancel.cancel();
                }
            }
            Effect::CloseTurn { context, marker: mark } => {
                let registry = self.registry.clone();
                let turn = mark.turn();
                let closed =
                    store.journal.close_turn(self.conversation, context, to_journal_marker(mark), registry.clock.now());
                let closed = closed.map(move |result| Event::TurnClosed {
                    turn,
                    moment: model_call::current_moment(&registry),
                    result,
                });
                self.running.push(closed.boxed());
            }
            Effect::BeginTurn(turn) => {
                let sinks = TurnSinks::default();
                self.registry.attached.begin_turn(self.conversation, turn, &sinks);
                self.turn = Some(TurnIo::new(turn, sinks));
            }
            Effect::AddListener(request) => {
                if let (Some(sink), Some(turn)) = (self.sinks.get(&request), &self.turn) {
                    turn.sinks.add_listener(sink.clone());
                }
            }
            Effect::AddApprovalListener(request) => {
                if let (Some(sink), Some(turn)) = (self.sinks.get(&request), &self.turn) {
                    turn.sinks.add_approval_listener(sink.clone());
                }
            }
            Effect::SendTo(request, said) => {
                if let Some(sink) = self.sinks.get(&request) {
                    sink.send(&said);
                }
            }
            Effect::Broadcast(said) => {
                if let Some(turn) = &self.turn {
                    turn.sinks.send(&said);
                }
            }
        }
    }

    fn reply(&mut self, request: RequestId, result: Result<CommandOutcome>) {
        self.sinks.remove(&request);
        let Some(reply) = self.replies.remove(&request) else { return };
        let mut hold = None;
        if matches!(result, Ok(CommandOutcome::Held)) {
            let (guard, dropped) = HoldGuard::new();
            hold = Some(guard);
            self.running.push(dropped.map(|_| Event::HoldReleased).boxed());
        }
        // If the caller is gone, the command was carried out all the same.
        let _ = reply.send(result.map(|outcome| CommandReply { outcome, hold }));
    }
}

/// The error of requests that were in progress when another daemon took the agent over.
fn taken_over() -> Error {
    Error::new(ErrorKind::Busy, "another node has taken the agent over").hint(MAYBE_STORED_HINT)
}

/// Waits until another daemon takes the agent over; without a cluster, for ever.
async fn until_lost(lost: &mut Option<Pin<Box<WaitForCancellationFutureOwned>>>) {
    match lost {
        Some(lost) => lost.await,
        None => std::future::pending().await,
    }
}
