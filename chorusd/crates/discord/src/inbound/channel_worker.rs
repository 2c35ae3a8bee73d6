//! The worker of a channel, a thread or direct messages. It handles the channel's events in order and claims each message on disk before anybody
//! processes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_base::Backoff;
use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::discord::{ClaimOutcome, NewClaim};
use chorus_runtime::SpawnTracked as _;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{ChannelId, GuildId, MessageId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backfill::{self, Backlog};
use super::conversation_queue::{PendingEdit, QueuePosition};
use super::request::{self, Incoming, MessageRequest};
use super::{Claim, MAX_WAITING_CLAIMS, RETRY_BACKOFF, no_agent_notice, refusal_notices, shared_claims};
use crate::app::DiscordApp;
use crate::channels::{AgentChannels, ChannelTarget};
use crate::direct::{self, Access, DirectChannel, Membership};
use crate::{conversations, member, threads};

/// Capacity of a channel's event queue. If it overflows, the channel is backfilled.
const EVENT_QUEUE_LEN: usize = 256;
/// Messages that are not for the agent, after which the last read message is recorded again.
const MAX_UNRECORDED_MESSAGES: u32 = 64;

/// An event in a channel.
#[derive(Debug)]
pub(super) enum ChannelEvent {
    Message {
        message: Box<Message>,
        /// It came before the connection was open again: the gateway may have sent it to an earlier connection, too.
        is_replayed: bool,
    },
    Edited(Box<MessageUpdateEvent>),
    Deleted(Vec<MessageId>),
    /// There is a new connection; events before it may have been missed.
    Connected,
    /// Chorus's permissions may have changed.
    RightsChanged,
}

/// The handle of a channel's worker.
#[derive(Debug)]
pub(super) struct ChannelHandle {
    tx: mpsc::Sender<ChannelEvent>,
    overflow: Arc<Overflow>,
}

/// Whether events were dropped because the queue was full.
#[derive(Debug, Default)]
struct Overflow {
    has_dropped: AtomicBool,
    dropped: Notify,
}

impl ChannelHandle {
    /// Starts the worker.
    pub(super) fn start(app: &Arc<DiscordApp>, id: ChannelId, shard: u32) -> Self {
        let (tx, rx) = mpsc::channel(EVENT_QUEUE_LEN);
        let overflow = Arc::<Overflow>::default();
        let intake = ChannelWorker {
            app: app.clone(),
            stop: app.shards.term(shard),
            id,
            overflow: overflow.clone(),
            recorded_for: None,
            needs_backfill: true,
            denied: None,
            unrecorded: 0,
            newest: 0,
        };
        app.tasks.spawn_tracked(intake.run(rx));
        Self { tx, overflow }
    }

    /// Returns whether the worker has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.tx.is_closed()
    }

    /// Sends an event to the worker. Once the queue is full, all events are dropped until the channel is backfilled, so
    /// that their order is kept.
    pub(super) fn send(&self, note: ChannelEvent) {
        if self.overflow.has_dropped.load(Ordering::SeqCst) || self.tx.try_send(note).is_err() {
            self.overflow.has_dropped.store(true, Ordering::SeqCst);
            self.overflow.dropped.notify_one();
        }
    }
}

struct ChannelWorker {
    app: Arc<DiscordApp>,
    /// Cancelled when this node receives no messages any more.
    stop: CancellationToken,
    id: ChannelId,
    overflow: Arc<Overflow>,
    /// Of a thread or of direct messages: the agent for which it is recorded on disk how far they were read.
    recorded_for: Option<Uuid>,
    /// The channel must be backfilled first. Until then the record of the last read message does not advance.
    needs_backfill: bool,
    /// Discord does not let Chorus read the channel. New messages are handled all the same.
    denied: Option<ReadDenied>,
    /// Messages that are not for the agent since the last read message was recorded, and the newest of them.
    unrecorded: u32,
    newest: u64,
}

/// When to try to read the channel again if no change of permissions is reported.
struct ReadDenied {
    until: Instant,
    backoff: Backoff,
}

impl ChannelWorker {
    async fn run(mut self, mut rx: mpsc::Receiver<ChannelEvent>) {
        let stop = self.stop.clone();
        let work = async {
            loop {
                let note = tokio::select! {
                    biased;
                    note = rx.recv() => match note {
                        Some(note) => note,
                        None => return,
                    },
                    () = self.overflow.dropped.notified() => ChannelEvent::Connected,
                };
                self.handle_event(note).await;
                // From here on events are queued again; those that were dropped are backfilled.
                if rx.is_empty() && self.overflow.has_dropped.swap(false, Ordering::SeqCst) {
                    self.handle_event(ChannelEvent::Connected).await;
                }
            }
        };
        // Work that is interrupted is either in the database or arrives again.
        tokio::select! {
            () = work => {}
            () = stop.cancelled() => {}
        }
        if self.unrecorded > 0
            && !self.needs_backfill
            && let Err(failure) = self.app.tables.channels.mark_seen(self.id.get(), self.newest).await
        {
            tracing::debug!(channel = %self.id, %failure, "cannot record the last message read");
        }
    }

    async fn handle_event(&mut self, note: ChannelEvent) {
        if let ChannelEvent::Message { message, is_replayed: true } = &note
            && self.is_read(message.id).await
        {
            return;
        }
        match &note {
            ChannelEvent::Connected => (self.needs_backfill, self.denied) = (true, None),
            ChannelEvent::RightsChanged => self.denied = None,
            _ => {}
        }
        let Some(ChannelTarget { agent, .. }) = self.find_target(&note).await else { return };
        if self.needs_backfill && self.denied.as_ref().is_none_or(|closed| closed.until <= Instant::now()) {
            let told = if let ChannelEvent::Message { message, .. } = &note { Some(&**message) } else { None };
            self.catch_up(&agent, told).await;
        }
        match note {
            ChannelEvent::Message { message, .. } => self.handle_message(&agent, *message).await,
            ChannelEvent::Edited(event) => self.handle_edit(&agent, &event).await,
            ChannelEvent::Deleted(messages) => {
                for message in messages {
                    apply_edit(&self.app, message, PendingEdit::Deleted).await;
                }
            }
            ChannelEvent::Connected | ChannelEvent::RightsChanged => {}
        }
    }

    /// Returns the agent of the channel. Finds out first what the channel is if that is not known, and records a thread
    /// before it is read.
    async fn find_target(&mut self, note: &ChannelEvent) -> Option<ChannelTarget> {
        let message = if let ChannelEvent::Message { message, .. } = note { Some(&**message) } else { None };
        if self.app.channels.target_of(self.id).is_none() {
            threads::lookup(&self.app, self.id).await;
        }
        self.retry_until_ok(|| self.app.channels.refresh_other(&self.app, self.id)).await;
        if self.app.channels.direct.get(self.id).is_some() {
            self.retry_until_ok(|| self.app.channels.refresh_direct_agent(&self.app)).await;
        }
        let Some(target) = self.app.channels.target_of(self.id) else {
            if let Some(message) = message {
                no_agent_notice::on_message(&self.app, message);
            }
            return None;
        };
        // The next agent may have the name or the channel of one that was destroyed.
        let agent = Some(target.agent.settings.id);
        let is_recorded = self.recorded_for == agent;
        if let Some(thread) = target.thread.as_ref().filter(|_| !is_recorded) {
            let message = message.map(|message| message.id);
            self.retry_until_ok(|| threads::record(&self.app, &target.agent, thread, message)).await;
            self.recorded_for = agent;
        }
        if let Some(direct) = target.direct.as_ref().filter(|_| !is_recorded) {
            if let Some(message) = message
                && self.check_access(&target.agent, direct).await == Access::Denied
            {
                no_agent_notice::on_refused(&self.app, message);
                return None;
            }
            let message = message.map(|message| message.id);
            let record = || direct::ensure_recorded(&self.app, &target.agent, direct, message);
            if !self.retry_until_ok(record).await {
                return None;
            }
            self.recorded_for = agent;
        }
        Some(target)
    }

    /// Checks whether the person of direct messages may write to the agent, with retries until Discord tells.
    async fn check_access(&self, agent: &AgentEntry, direct: &DirectChannel) -> Access {
        let mut backoff = RETRY_BACKOFF;
        loop {
            match direct::check_access(&self.app, agent, direct.user).await {
                Ok(access) => return access,
                Err(error) => {
                    tracing::warn!(channel = %self.id, %error, "cannot check who may write direct messages; retrying");
                }
            }
            sleep(backoff.next_wait()).await;
        }
    }

    /// Backfills the channel, with retries, until it succeeds or Discord denies it. `told` is a message from the
    /// gateway, which says more about its author than the REST API does.
    async fn catch_up(&mut self, agent: &AgentEntry, told: Option<&Message>) {
        let mut backoff = RETRY_BACKOFF;
        loop {
            let mut missing = match backfill::read_channel(&self.app, self.id, agent).await {
                Ok(missing) => missing,
                Err(backfill::BackfillError::Denied(why)) => {
                    let mut backoff = self.denied.as_ref().map_or(RETRY_BACKOFF, |denied| denied.backoff);
                    if self.denied.is_none() {
                        tracing::warn!(channel = %self.id, why, "cannot read a channel's history; only new messages are answered");
                    }
                    self.denied = Some(ReadDenied { until: Instant::now() + backoff.next_wait(), backoff });
                    return;
                }
                Err(backfill::BackfillError::Transient { why, after }) => {
                    tracing::warn!(channel = %self.id, why, "cannot read a channel's history now");
                    let usual = backoff.next_wait();
                    sleep(after.unwrap_or(usual)).await;
                    continue;
                }
            };
            if let Some(told) = told
                && let Some(read) = missing.messages.iter_mut().find(|read| read.id == told.id)
            {
                *read = told.clone();
            }
            (self.needs_backfill, self.denied) = (false, None);
            self.apply_backlog(agent, missing).await;
            return;
        }
    }

    async fn apply_backlog(&mut self, agent: &AgentEntry, missing: Backlog) {
        for (message, wish) in missing.edits {
            apply_edit(&self.app, message, wish).await;
        }
        let waiting = self.app.inbound.queues.pending_count(agent.settings.id);
        let said = missing.messages.len();
        let skipped = said.saturating_sub((MAX_WAITING_CLAIMS as usize).saturating_sub(waiting));
        if skipped > 0 || missing.has_more {
            let upto = missing.messages.get(skipped).map_or(missing.newest, |next| next.id.get() - 1);
            let line = refusal_notices::skipped_messages(self.id, skipped, missing.has_more);
            self.retry_until_ok(|| self.app.tables.claims.skip_messages(self.id.get(), upto, line.clone())).await;
            self.app.outbox.wake_sender(self.id);
        }
        for message in missing.messages.into_iter().skip(skipped) {
            self.handle_message(agent, message).await;
        }
        if missing.newest > 0 {
            self.retry_until_ok(|| self.app.tables.channels.mark_seen(self.id.get(), missing.newest)).await;
        }
    }

    async fn handle_message(&mut self, agent: &AgentEntry, message: Message) {
        let direct = self.app.channels.direct.get(self.id);
        let membership = match &direct {
            None => None,
            Some(direct) => match self.check_access(agent, direct).await {
                Access::Granted(membership) => Some(membership),
                Access::Denied => {
                    no_agent_notice::on_refused(&self.app, &message);
                    return self.record_read(message.id).await;
                }
            },
        };
        let of_channel = || channel_guild(&self.app.channels, agent, message.guild_id);
        let guild = membership.as_ref().map_or_else(of_channel, |membership| membership.guild);
        // After a resumed connection the gateway sends no roles.
        if let Err(error) = self.app.roles.ensure_loaded(&self.app, guild).await {
            tracing::warn!(%error, %guild, "cannot load the roles of a server; using their IDs");
        }
        match request::classify(&self.app, guild, &message) {
            Incoming::Ignored => self.record_read(message.id).await,
            Incoming::Unreadable => self.handle_unreadable(message.id).await,
            Incoming::Request(asked) => {
                let asked = match membership {
                    Some(membership) => with_membership(&self.app, &message, asked, &membership),
                    None => asked,
                };
                if self.app.tables.shared.is_some() {
                    // Whoever has the agent finds the conversation.
                    self.claim_message(message.id, agent.settings.id, &asked).await;
                    return;
                }
                let Some(conversation) = self.find_conversation().await else { return };
                if self.claim_message(message.id, conversation.agent, &asked).await {
                    let (message, channel) = (message.id, self.id);
                    let claim = Claim { message, channel, conversation, request: asked, is_inherited: false };
                    self.app.inbound.queues.enqueue(&self.app, claim);
                }
            }
        }
    }

    /// Returns the conversation that messages of the channel belong to. That of a thread or of direct messages is created
    /// before its first message is claimed, so that the next daemon finds it.
    async fn find_conversation(&self) -> Option<ConversationKey> {
        let target = self.app.channels.target_of(self.id)?;
        Some(self.retry_until_ok(|| conversations::ensure_conversation(&self.app, &target)).await)
    }

    /// Returns whether it is recorded that a message was read: it was claimed, or stays unanswered.
    async fn is_read(&self, message: MessageId) -> bool {
        let row = self.retry_until_ok(|| self.app.tables.channels.get(self.id.get())).await;
        row.is_some_and(|row| message.get() <= row.seen)
    }

    /// Records that a message that is not for the agent was read.
    async fn record_read(&mut self, message: MessageId) {
        if self.needs_backfill {
            return;
        }
        (self.unrecorded, self.newest) = (self.unrecorded + 1, self.newest.max(message.get()));
        if self.unrecorded >= MAX_UNRECORDED_MESSAGES {
            self.retry_until_ok(|| self.app.tables.channels.mark_seen(self.id.get(), self.newest)).await;
            self.unrecorded = 0;
        }
    }

    /// Handles a message of a person whose content Discord withholds.
    async fn handle_unreadable(&mut self, message: MessageId) {
        if self.app.inbound.mark_unreadable(self.id) {
            tracing::warn!(channel = %self.id, "Discord withholds message text: enable the Message Content intent");
            if let Some(line) = refusal_notices::content_withheld(self.id) {
                self.retry_until_ok(|| self.app.tables.outbox.enqueue(vec![line.clone()])).await;
                self.app.outbox.wake_sender(self.id);
            }
        }
        self.record_read(message).await;
    }

    /// Claims a message for an agent. Returns whether it is to be queued.
    async fn claim_message(&mut self, message: MessageId, agent: Uuid, asked: &MessageRequest) -> bool {
        let Ok(asked) = serde_json::to_string(asked) else { return false };
        let new = NewClaim {
            message: message.get(),
            channel: self.id.get(),
            agent,
            request: asked,
            at: self.app.ops.clock.now(),
            contiguous: !self.needs_backfill,
        };
        let Some(full) = refusal_notices::queue_full(self.id, message) else { return false };
        let claimed =
            self.retry_until_ok(|| self.app.tables.claims.claim(new.clone(), MAX_WAITING_CLAIMS, full.clone())).await;
        self.unrecorded = 0;
        match claimed {
            ClaimOutcome::Queued => self.app.inbound.claimed.notify_one(),
            ClaimOutcome::AlreadyClaimed => {}
            ClaimOutcome::QueueFull => self.app.outbox.wake_sender(self.id),
        }
        claimed == ClaimOutcome::Queued
    }

    async fn handle_edit(&self, agent: &AgentEntry, event: &MessageUpdateEvent) {
        let guild = channel_guild(&self.app.channels, agent, event.guild_id);
        let waiting = self.retry_until_ok(|| shared_claims::waiting_requests(&self.app, self.id)).await;
        let Some((_, before)) = waiting.into_iter().find(|(message, _)| *message == event.id) else { return };
        if let Some(asked) = request::apply_update(&self.app, guild, &before, event) {
            apply_edit(&self.app, event.id, PendingEdit::Changed(asked)).await;
        }
    }

    /// Runs a database operation until it succeeds. Later events wait for it.
    async fn retry_until_ok<T, F: Future<Output = Result<T>>>(&self, work: impl Fn() -> F) -> T {
        let mut backoff = RETRY_BACKOFF;
        loop {
            match work().await {
                Ok(done) => return done,
                Err(failure) => {
                    tracing::warn!(channel = %self.id, %failure, "cannot store received messages; retrying")
                }
            }
            sleep(backoff.next_wait()).await;
        }
    }
}

/// Adds to a direct message what the person is in the guild by which they may write.
fn with_membership(
    app: &DiscordApp,
    message: &Message,
    asked: MessageRequest,
    membership: &Membership,
) -> MessageRequest {
    let Membership { guild, nick, roles } = membership;
    MessageRequest { by: member::requester(app, *guild, &message.author, nick.as_deref(), roles), ..asked }
}

/// Returns the guild of a channel, as far as it is known.
pub(super) fn channel_guild(channels: &AgentChannels, agent: &AgentEntry, told: Option<GuildId>) -> GuildId {
    let known = || channels.channel_of(agent.settings.id).and_then(|(_, guild)| guild);
    told.or_else(known).unwrap_or(GuildId::new(1))
}

/// Applies an edit or deletion to a message that is still in the queue, here or at another node.
async fn apply_edit(app: &DiscordApp, message: MessageId, wish: PendingEdit) {
    let is_here = match (app.inbound.queues.apply_edit(message, &wish), &app.tables.shared) {
        (Some(QueuePosition::Waiting), _) => true,
        (None, Some(_)) => false,
        (Some(QueuePosition::Current), _) | (None, None) => return,
    };
    let withdrawn = match (wish, &app.tables.shared) {
        (PendingEdit::Changed(asked), _) => return super::store_edit(&app.tables, message, &asked).await,
        (PendingEdit::Deleted, Some(shared)) if !is_here => shared.withdraw(message.get()).await,
        (PendingEdit::Deleted, _) => app.tables.claims.finish_unanswered(message.get()).await,
    };
    if let Err(failure) = withdrawn {
        tracing::warn!(%message, %failure, "cannot withdraw a deleted message");
    }
}
