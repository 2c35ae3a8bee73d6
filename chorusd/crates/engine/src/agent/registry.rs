//! The registry of active agents: finds an agent's actor or starts it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::context::{Context, Deadline};
use chorus_base::Ticks;
use chorus_base::error::{Elsewhere, Error, Result};
use chorus_base::sync::Mutex;
use chorus_catalog::SessionTable;
use chorus_clock::Clock;
use chorus_journal::{ContextRow, Journal, NewEvent};
use chorus_llm::Models;
use chorus_proto::EventType;
use chorus_redact::Redactor;
use chorus_runtime::SpawnTracked as _;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::ContextNo;
use chorus_store::Store;
use futures_util::future::BoxFuture;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::actor::{Actor, Envelope};
use super::agent_index::AgentIndex;
use super::attached_clients::AttachedClients;
use super::background_extraction::RunningExtractions;
use super::checkpoint_on_save::CheckpointLimit;
use super::command::{self, Command};
use super::conversation_index::ConversationIndex;
use super::idle_expiry::{DeadlineTimers, RESTART_GRACE};
use super::journal_trim::{self, TrimQueue};
use super::prompt_size::ConversationSize;
use super::recall::PassageFinder;
use super::summaries::Summaries;
use super::turn_slots::TurnSlots;
use super::turn_status::RunningTurns;
use crate::KeyedMutex;
use crate::search::{LiveChanges, Novelty};
use crate::tools::ToolServices;
use crate::traces::TraceFeed;
use crate::usage::{TokenCounter, UsageTracker};
pub use live_contexts::LiveHead;
use live_heads::LiveHeads;

/// Maximum number of requests that may wait for one agent; further ones fail with `busy`.
const MAILBOX_CAPACITY: usize = 256;

/// All active agents and the services that their actors use.
pub struct Registry {
    pub(super) store: Arc<Store>,
    pub(super) agents: Arc<AgentIndex>,
    pub(super) clock: Clock,
    pub(super) home: PathBuf,
    pub(super) models: Arc<Models>,
    pub(super) usage: Arc<UsageTracker>,
    pub(super) traces: Arc<TraceFeed>,
    pub token_counter: Arc<TokenCounter>,
    pub(super) summaries: Arc<Summaries>,
    pub(crate) tools: Arc<ToolServices>,
    pub(super) redactor: Arc<Redactor>,
    pub idle_timers: DeadlineTimers<ConversationKey>,
    /// When contexts without recent requests are evicted from memory.
    pub eviction_timers: DeadlineTimers<ConversationKey>,
    pub running: RunningTurns,
    pub(super) turn_slots: TurnSlots,
    /// Who has a conversation open in a chat.
    pub attached: AttachedClients,
    /// For the search index.
    pub live_changes: Arc<LiveChanges>,
    /// Finds what agents recall. Set once the daemon is complete.
    pub passage_finder: OnceLock<Weak<dyn PassageFinder>>,
    pub(super) extractions: RunningExtractions,
    pub(super) trim_queue: TrimQueue,
    pub(super) checkpoint_limit: CheckpointLimit,
    /// Held while the checkpoints of an agent's workspace are stored for other nodes.
    pub(super) workspace_locks: KeyedMutex<Uuid>,
    tasks: TaskTracker,
    /// Set when no further turn may start.
    closing: AtomicBool,
    pub(super) inner: Mutex<Inner>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Registry")
    }
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) actors: HashMap<ConversationKey, mpsc::Sender<Envelope>>,
    /// Heads of the live contexts, with an actor or (until the first request after a start) without.
    live: LiveHeads,
    /// Size of the next prompt for each; missing until the first request after a start.
    prompt_sizes: HashMap<ConversationKey, ConversationSize>,
    /// Contexts that could not be loaded completely. Such a context accepts no messages before it is loaded whole.
    damaged_contexts: HashSet<ContextNo>,
    /// Agents whose further actors wait until the token is cancelled.
    pub(super) frozen: HashMap<Uuid, CancellationToken>,
    /// Agents that this daemon has among those of a cluster. The token is cancelled when another one takes the agent over;
    /// empty without a cluster.
    pub(super) adopted: HashMap<Uuid, CancellationToken>,
    /// Agents that were moved to other daemons, with these.
    pub(super) moved: HashMap<Uuid, Elsewhere>,
}

impl Registry {
    /// Creates a registry in which the contexts of `heads` are live.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        agents: Arc<AgentIndex>,
        home: PathBuf,
        summaries: Arc<Summaries>,
        tools: Arc<ToolServices>,
        tasks: TaskTracker,
        heads: Vec<ContextRow>,
    ) -> Arc<Self> {
        let live = heads.into_iter().collect();
        let inner = Mutex::new(Inner { live, ..Inner::default() });
        Arc::new(Self {
            trim_queue: TrimQueue::default(),
            checkpoint_limit: CheckpointLimit::default(),
            workspace_locks: KeyedMutex::default(),
            token_counter: Arc::new(TokenCounter::new(summaries.models.clone(), store.clone())),
            store,
            agents,
            clock: tools.clock.clone(),
            home,
            models: summaries.models.clone(),
            usage: summaries.usage.clone(),
            traces: summaries.traces.clone(),
            summaries,
            redactor: tools.redactor.clone(),
            tools,
            idle_timers: DeadlineTimers::default(),
            eviction_timers: DeadlineTimers::default(),
            running: RunningTurns::default(),
            turn_slots: TurnSlots::default(),
            attached: AttachedClients::default(),
            live_changes: Arc::default(),
            passage_finder: OnceLock::new(),
            extractions: RunningExtractions::default(),
            tasks,
            closing: AtomicBool::new(false),
            inner,
        })
    }

    /// Starts the idle timers of the contexts that were live before this start. Each has at least its grace period
    /// left.
    pub fn start_timers(&self) {
        for head in self.inner.lock().live.values() {
            self.idle_timers.set(head.conversation, self.deadline_after_restart(head).map(|deadline| deadline.due));
        }
    }

    /// Returns the idle deadline of a context that was live before this start.
    pub(super) fn deadline_after_restart(&self, head: &ContextRow) -> Option<Deadline> {
        let timeout = self.agents.by_id(head.conversation.agent)?.settings.idle_timeout?;
        self.deadline_within(head, timeout)
    }

    /// As [`Registry::deadline_after_restart`], by the idle timeout of the agent.
    pub(super) fn deadline_within(&self, head: &ContextRow, timeout: Duration) -> Option<Deadline> {
        let at = head.idle_deadline_at?;
        let due = self.idle_timers.due(head.conversation).unwrap_or_else(|| {
            let left = Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default();
            // If the wall clock was set back, the context must not have more than its timeout left.
            self.clock.ticks().after(left.min(timeout).max(RESTART_GRACE.min(timeout)))
        });
        Some(Deadline { due, at })
    }

    /// Loads the contexts in which a turn was running when the daemon ended, so that those turns are closed.
    pub async fn close_open_turns(self: &Arc<Self>) {
        let open: Vec<ConversationKey> =
            self.inner.lock().live.values().filter(|head| head.turn.is_some()).map(|head| head.conversation).collect();
        for conversation in open {
            if let Err(failure) = self.ask(conversation, command::wake()).await {
                tracing::warn!(agent = %conversation.agent, %failure, "cannot close an interrupted turn");
            }
        }
    }

    /// Ends every turn and lets no further one start.
    pub async fn end_turns(self: &Arc<Self>) {
        self.closing.store(true, Ordering::SeqCst);
        // Agents that become active from here on check the flag.
        let active: Vec<ConversationKey> = self.inner.lock().actors.keys().copied().collect();
        let told = active.into_iter().map(|conversation| async move {
            if let Err(failure) = self.ask(conversation, command::end_turns()).await {
                tracing::warn!(agent = %conversation.agent, %failure, "cannot end a turn before its context is saved");
            }
        });
        join_all(told).await;
    }

    /// Whether no further turn may start.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Recomputes the deadlines of an agent's live contexts after a change of its idle timeout.
    pub async fn update_idle_timeouts(self: &Arc<Self>, agent: Uuid) {
        for conversation in self.live_conversations(Some(agent)) {
            if let Err(failure) = self.ask(conversation, command::update_idle_timeout()).await {
                tracing::warn!(%agent, %failure, "the new idle timeout applies from the next message");
            }
        }
    }

    /// Returns the journal of the live contexts.
    #[must_use]
    pub fn journal(&self) -> &dyn Journal {
        &*self.store.journal
    }

    /// Returns the table of sessions.
    #[must_use]
    pub fn sessions(&self) -> &Arc<dyn SessionTable> {
        &self.store.catalog.sessions
    }

    /// Returns the conversations of all agents beside `main`.
    #[must_use]
    pub fn conversations(&self) -> &ConversationIndex {
        &self.agents.conversations
    }

    /// Returns the time of day.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the time on the clock that only goes forward.
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }

    /// Spawns a background task.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_tracked(task);
    }

    /// Emits an event to observers, without waiting for it.
    pub fn emit_event(&self, kind: EventType, agent: Option<String>, conversation: Option<String>, data: Value) {
        drop(self.store.journal.emit(vec![NewEvent { at: self.clock.now(), kind, agent, conversation, data }]));
    }

    /// Sends a command to a conversation of an agent and waits for the reply.
    ///
    /// # Errors
    /// `busy` if too many requests wait, else the error of the command itself.
    pub async fn ask<R>(self: &Arc<Self>, conversation: ConversationKey, command: Command<R>) -> Result<R> {
        self.send_command(conversation, command, None).await
    }

    /// Sends a command to an agent that is no longer in the index.
    pub async fn ask_with_settings<R>(
        self: &Arc<Self>,
        conversation: ConversationKey,
        settings: Arc<AgentSettings>,
        command: Command<R>,
    ) -> Result<R> {
        self.send_command(conversation, command, Some(settings)).await
    }

    async fn send_command<R>(
        self: &Arc<Self>,
        conversation: ConversationKey,
        command: Command<R>,
        settings: Option<Arc<AgentSettings>>,
    ) -> Result<R> {
        let Command { command, take_reply } = command;
        let (reply, answer) = oneshot::channel();
        let envelope = Envelope { command: Box::new(command), settings, reply };
        match self.post_envelope(conversation, envelope) {
            Err(TrySendError::Closed(envelope)) => {
                self.respawn(conversation).await?;
                self.post_envelope(conversation, envelope)
            }
            posted => posted,
        }
        .map_err(|_| Error::busy())?;
        let reply = answer.await.unwrap_or_else(|_| Err(Error::stopping()));
        let reply = reply.map_err(|failure| self.agents.name_in_hint(conversation, failure))?;
        take_reply(reply).ok_or_else(|| Error::internal("an agent sent a mismatched reply"))
    }

    fn post_envelope(
        self: &Arc<Self>,
        conversation: ConversationKey,
        envelope: Envelope,
    ) -> Result<(), TrySendError<Envelope>> {
        // Under the lock, which a retiring actor holds too: no envelope ends up in a mailbox that has no reader.
        let mut inner = self.inner.lock();
        if let Some(there) = inner.moved.get(&conversation.agent).cloned() {
            drop(inner);
            let _ = envelope.reply.send(Err(self.moved_error(conversation.agent, there)));
            return Ok(());
        }
        let actor = match inner.actors.get(&conversation) {
            Some(actor) => actor,
            None => {
                let (actor, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
                let head = inner.live.get(conversation).cloned();
                let thawed = inner.frozen.get(&conversation.agent).cloned();
                let lost = inner.adopted.get(&conversation.agent).cloned();
                self.tasks.spawn_tracked(Actor::new(conversation, mailbox, self.clone()).run(head, thawed, lost));
                inner.actors.entry(conversation).or_insert(actor)
            }
        };
        actor.try_send(envelope)
    }

    /// Removes an actor whose task ended without retiring, which only a bug can cause, so that a new one can start. Its
    /// memory is lost; the context is what the journal has.
    fn respawn<'a>(&'a self, conversation: ConversationKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let dead = self.inner.lock().actors.get(&conversation).cloned().filter(mpsc::Sender::is_closed);
            let Some(dead) = dead else { return Ok(()) };
            tracing::error!(agent = %conversation.agent, "the task of an agent ended unexpectedly; reloading its context from the journal");
            // Commits what the dead actor had queued before the head is read.
            self.store.journal.ping().await?;
            let head =
                self.store.journal.live_contexts().await?.into_iter().find(|head| head.conversation == conversation);
            let mut inner = self.inner.lock();
            // Unless another request did so in the meantime.
            if inner.actors.get(&conversation).is_some_and(|actor| actor.same_channel(&dead)) {
                inner.actors.remove(&conversation);
                inner.live.remove(conversation);
                inner.prompt_sizes.remove(&conversation);
                self.running.set(conversation, None);
                self.attached.forget_turn(conversation);
                self.live_changes.note(conversation, Novelty::Changed);
                head.into_iter().for_each(|head| inner.live.insert(head));
            }
            Ok(())
        })
    }

    /// Removes an actor that has nothing in progress. Returns false if a request came in the meantime.
    pub(super) fn retire(&self, conversation: ConversationKey, mailbox: &mpsc::Receiver<Envelope>) -> bool {
        let mut inner = self.inner.lock();
        if !mailbox.is_empty() {
            return false;
        }
        inner.actors.remove(&conversation);
        if inner.live.get(conversation).is_some() {
            self.live_changes.note(conversation, Novelty::Changed);
        }
        inner.live.remove(conversation);
        inner.prompt_sizes.remove(&conversation);
        self.idle_timers.set(conversation, None);
        self.eviction_timers.set(conversation, None);
        true
    }

    /// Removes an actor whose context stays live in the journal. Returns false if a request came in the meantime.
    pub(super) fn unload(&self, conversation: ConversationKey, mailbox: &mpsc::Receiver<Envelope>) -> bool {
        let mut inner = self.inner.lock();
        let gone = mailbox.is_empty() && inner.actors.remove(&conversation).is_some();
        if gone {
            self.eviction_timers.set(conversation, None);
        }
        gone
    }

    /// Publishes the head of an agent's context and the size of its next prompt.
    pub(super) fn publish_context(
        &self,
        conversation: ConversationKey,
        context: Option<&Context>,
        prompt_size: Option<ConversationSize>,
    ) {
        let mut inner = self.inner.lock();
        self.idle_timers.set(conversation, context.and_then(|context| context.deadline).map(|deadline| deadline.due));
        let measure = |row: &ContextRow| (row.context, row.totals);
        let before = inner.live.get(conversation).map(measure);
        match context {
            Some(context) => inner.live.insert(to_head(conversation, context)),
            None => inner.live.remove(conversation),
        };
        if before != inner.live.get(conversation).map(measure) {
            let is_new = before.is_none_or(|(_, totals)| totals.messages == 0);
            self.live_changes.note(conversation, if is_new { Novelty::New } else { Novelty::Changed });
        }
        match prompt_size {
            Some(size) => inner.prompt_sizes.insert(conversation, size),
            None => inner.prompt_sizes.remove(&conversation),
        };
    }

    /// Whether a context could not be loaded completely at the last attempt.
    pub(super) fn is_damaged(&self, context: ContextNo) -> bool {
        self.inner.lock().damaged_contexts.contains(&context)
    }

    /// Stores whether a context could not be loaded completely.
    pub(super) fn set_damaged(&self, context: ContextNo, is_damaged: bool) {
        let damaged = &mut self.inner.lock().damaged_contexts;
        let _ = if is_damaged { damaged.insert(context) } else { damaged.remove(&context) };
    }

    /// Trims the records of an ended context from the journal in the background.
    pub(super) fn trim_context(self: &Arc<Self>, context: ContextNo) {
        if self.trim_queue.push(context) {
            self.tasks.spawn_tracked(journal_trim::run(self.clone()));
        }
    }
}

fn to_head(conversation: ConversationKey, context: &Context) -> ContextRow {
    ContextRow {
        context: context.number,
        conversation,
        started_at: context.started_at,
        last_activity_at: context.last_activity_at,
        idle_deadline_at: context.deadline.map(|deadline| deadline.at),
        totals: context.totals,
        parent: context.parent,
        saved_messages: context.saved,
        saved_session: context.saved_session,
        base_session: context.base_session,
        turn: None,
        restoration: context.restoration,
    }
}

mod adoption;
mod live_contexts;
mod live_heads;
#[cfg(test)]
mod tests;
