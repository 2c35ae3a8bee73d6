//! Inbound messages: what people write in the channels of agents. Each message is claimed once, on disk, before it is
//! processed; then each conversation processes its messages one after the other. A channel is the conversation `main`
//! of its agent; each thread below it, and the direct messages with each person, are others.

mod attachments;
mod backfill;
mod channel_worker;
mod claim_processor;
mod conversation_queue;
mod download;
mod message_text;
mod no_agent_notice;
mod refusal_notices;
mod request;
mod shared_claims;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_base::sync::Mutex;
use chorus_config::discord::DiscordConfig as Config;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::discord::{DiscordTables, OpenClaim};
use chorus_runtime::SpawnTracked as _;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{ChannelId, GuildId, MessageId};
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use self::channel_worker::{ChannelEvent, ChannelHandle};
use self::conversation_queue::ConversationQueues;
use self::download::Downloader;
use super::app::DiscordApp;
use crate::outbox::Outbox;
use crate::{conversations, direct, threads};
pub(crate) use message_text::ChannelNames;
pub(crate) use request::MessageRequest;
pub(crate) use shared_claims::queue_claims;

/// Claims of one agent that may be open; further messages are dropped.
const MAX_WAITING_CLAIMS: u32 = 100;
/// Channels that are backfilled at the same time.
const MAX_CONCURRENT_BACKFILLS: usize = 4;
/// Waits before retries.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// A claimed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub message: MessageId,
    pub channel: ChannelId,
    pub conversation: ConversationKey,
    pub request: MessageRequest,
    /// The previous daemon claimed it.
    pub is_inherited: bool,
}

impl Claim {
    /// The idempotency key of the message's turn: however often it is sent, the turn runs once.
    #[must_use]
    pub(crate) fn turn_key(&self) -> String {
        format!("discord:{}", self.message)
    }
}

/// The inbound state: a worker for each channel and thread, and a queue for each conversation.
#[derive(Debug)]
pub(crate) struct Inbound {
    workers: Mutex<HashMap<ChannelId, (u32, ChannelHandle)>>,
    /// Notified when a message was claimed that several nodes may work on.
    pub(crate) claimed: Notify,
    queues: ConversationQueues,
    /// The shards whose connection is open, and that replayed what was missed.
    connected: Mutex<HashSet<u32>>,
    downloader: Downloader,
    backfill_permits: Semaphore,
    /// Channels that were told that the content of messages cannot be read.
    unreadable_reported: Mutex<HashSet<ChannelId>>,
    no_agent_answers: no_agent_notice::NoAgentAnswers,
}

impl Inbound {
    /// Blocks, because the machine's certificates are read.
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            workers: Mutex::default(),
            claimed: Notify::new(),
            queues: ConversationQueues::default(),
            connected: Mutex::default(),
            downloader: Downloader::new(config)?,
            backfill_permits: Semaphore::new(MAX_CONCURRENT_BACKFILLS),
            unreadable_reported: Mutex::default(),
            no_agent_answers: no_agent_notice::NoAgentAnswers::default(),
        })
    }

    /// Returns whether messages of a conversation wait for an answer.
    pub(crate) fn has_claims(&self, conversation: ConversationKey) -> bool {
        self.queues.contains(conversation)
    }

    /// Marks a channel as told that its messages cannot be read. Returns whether it is the first time.
    fn mark_unreadable(&self, channel: ChannelId) -> bool {
        self.unreadable_reported.lock().insert(channel)
    }
}

/// Re-queues messages that the previous daemon claimed but did not answer. Runs before new messages are accepted, so
/// order is kept, and retries for as long as the claims cannot be read.
pub(crate) async fn resume_claims(app: &Arc<DiscordApp>) {
    let mut backoff = RETRY_BACKOFF;
    let open = loop {
        match app.tables.claims.list_open().await {
            Ok(open) => break open,
            Err(failure) => tracing::error!(%failure, "cannot load pending messages"),
        }
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = app.stop.cancelled() => return,
        }
    };
    for row in open {
        match claim_from_row(app, &row).await {
            Ok(Some(claim)) => app.inbound.queues.enqueue(app, claim),
            Ok(None) => drop_unreadable(&app.tables, &app.outbox, &row).await,
            Err(failure) => {
                tracing::error!(message = row.message, %failure, "a pending message waits for the next start")
            }
        }
    }
}

/// Returns the claim of a row; `None` if it cannot be parsed. A conversation that is lost is created again.
///
/// # Errors
/// Those of [`conversations::ensure_conversation`].
async fn claim_from_row(app: &DiscordApp, row: &OpenClaim) -> chorus_base::error::Result<Option<Claim>> {
    let channel = ChannelId::new(row.channel.max(1));
    let (Some(message), Ok(request)) = (message_id(row.message), serde_json::from_str(&row.request)) else {
        return Ok(None);
    };
    let found = conversations::find_conversation(&app.ops, &app.channels, row.agent, channel);
    let conversation = match (found, app.channels.target_of(channel)) {
        (Some(found), _) => found,
        (None, Some(target)) => conversations::ensure_conversation(app, &target).await?,
        (None, None) => return Ok(None),
    };
    Ok(Some(Claim { message, channel, conversation, request, is_inherited: true }))
}

fn message_id(message: u64) -> Option<MessageId> {
    (message != 0).then(|| MessageId::new(message))
}

/// Settles a claim that cannot be parsed, and tells the author.
async fn drop_unreadable(tables: &DiscordTables, outbox: &Outbox, row: &OpenClaim) {
    tracing::error!(message = row.message, "a pending message is unreadable and will not be answered");
    let channel = ChannelId::new(row.channel.max(1));
    let line = refusal_notices::claim_unreadable(channel, message_id(row.message));
    if let Err(failure) = tables.claims.finish(row.message, line.into_iter().collect()).await {
        tracing::warn!(message = row.message, %failure, "cannot discard an unreadable message; retrying at the next start");
    }
    outbox.wake_sender(channel);
}

/// Handles a new message.
pub(crate) fn on_message(app: &Arc<DiscordApp>, message: Message) {
    let (channel, guild) = (message.channel_id, message.guild_id);
    direct::observe(app, &message);
    let target = app.channels.target_of(channel);
    if let Some(thread) = target.as_ref().and_then(|target| target.thread.as_ref()) {
        threads::mark_active(app, thread);
    }
    // The channel's worker finds out what an unknown channel is.
    let is_unknown = || request::is_from_person(&message) && app.channels.may_be_thread(channel);
    match guild {
        _ if target.is_some() => {}
        Some(guild) if app.channels.serves(guild) && is_unknown() => {}
        // The worker finds out whether another node has the agent.
        None if app.tables.shared.is_some()
            && app.ops.config.discord.dm_agent.is_some()
            && request::is_from_person(&message) => {}
        Some(guild)
            if app.tables.shared.is_some() && app.channels.serves(guild) && request::is_from_person(&message) => {}
        _ => {
            no_agent_notice::on_message(app, &message);
            return;
        }
    }
    if guild.is_none_or(|guild| app.channels.serves(guild)) {
        let is_replayed = !app.inbound.connected.lock().contains(&app.shards.of(guild));
        send_to_worker(
            app,
            channel,
            app.shards.of(guild),
            ChannelEvent::Message { message: Box::new(message), is_replayed },
        );
    }
}

/// Handles an edit of a message.
pub(crate) fn on_edit(app: &Arc<DiscordApp>, event: MessageUpdateEvent) {
    let (channel, guild) = (event.channel_id, event.guild_id);
    send_to_channel(app, channel, guild, || ChannelEvent::Edited(Box::new(event)));
}

/// Handles the deletion of messages.
pub(crate) fn on_delete(app: &Arc<DiscordApp>, channel: ChannelId, guild: Option<GuildId>, messages: Vec<MessageId>) {
    send_to_channel(app, channel, guild, || ChannelEvent::Deleted(messages));
}

/// Handles a new connection: every channel and thread, and all direct messages, are backfilled before further messages are
/// claimed.
pub(crate) fn on_connected(app: &Arc<DiscordApp>, shard: u32) {
    app.inbound.connected.lock().insert(shard);
    catch_up(app, move |app, guild| app.shards.of(guild) == shard);
}

/// Backfills the channels and threads in the guilds that match `of`, and direct messages if no guild does. If several nodes
/// share the bot, agents that have moved away from this one are looked up.
fn catch_up(app: &Arc<DiscordApp>, of: impl Fn(&DiscordApp, Option<GuildId>) -> bool + Send + 'static) {
    // At once: a message that comes before it would hide those that were missed.
    let mut reached = channels_in(app, &of);
    if app.tables.shared.is_some() {
        let of_worker = |channel: &ChannelId| app.channels.guild_of(*channel).is_none_or(|guild| of(app, guild));
        let workers: Vec<_> = app.inbound.workers.lock().keys().copied().collect();
        reached
            .extend(workers.into_iter().filter(of_worker).filter(|channel| app.channels.target_of(*channel).is_none()));
    }
    reached.iter().for_each(|channel| send_to_channel(app, *channel, None, || ChannelEvent::Connected));
    if app.tables.shared.is_some() {
        let (reached, app) = (HashSet::<_>::from_iter(reached), app.clone());
        app.tasks.clone().spawn_tracked(async move {
            app.channels.look_up_moved(&app).await;
            for channel in channels_in(&app, &of).into_iter().filter(|channel| !reached.contains(channel)) {
                send_to_channel(&app, channel, None, || ChannelEvent::Connected);
            }
        });
    }
}

/// Returns the channels of agents and the threads that are read below them, in the guilds that match `of`, and the channels of
/// direct messages if no guild does.
fn channels_in(app: &DiscordApp, of: impl Fn(&DiscordApp, Option<GuildId>) -> bool) -> Vec<ChannelId> {
    let agents = app.ops.agents.all().into_iter().chain(app.channels.others.all());
    let channels = agents.filter_map(|agent| app.channels.channel_of(agent.settings.id));
    let threads = readable_threads(app).map(|thread| (thread.id, Some(thread.guild)));
    let directs = app.channels.direct.recorded().into_iter().map(|channel| (channel, None));
    channels.chain(threads).chain(directs).filter(|(_, guild)| of(app, *guild)).map(|(channel, _)| channel).collect()
}

/// Ends the workers of a shard, because another node receives its messages from now on.
pub(crate) fn end_term(app: &DiscordApp, shard: u32) {
    on_disconnected(app, shard);
    app.inbound.workers.lock().retain(|_, (of, _)| *of != shard);
}

/// Handles the end of a connection: until the next one is open, messages may be replayed.
pub(crate) fn on_disconnected(app: &DiscordApp, shard: u32) {
    app.inbound.connected.lock().remove(&shard);
}

/// Handles a guild that became available, possibly again: its channels are backfilled.
pub(crate) fn on_guild_available(app: &Arc<DiscordApp>, guild: GuildId) {
    catch_up(app, move |_, of| of == Some(guild));
}

/// Handles a thread below an agent's channel that is active, possibly again: it is backfilled.
pub(crate) fn on_thread_available(app: &Arc<DiscordApp>, thread: ChannelId) {
    send_to_channel(app, thread, None, || ChannelEvent::Connected);
}

/// Handles a change that may affect Chorus's permissions in a channel and the threads below it.
pub(crate) fn on_channel_rights_changed(app: &Arc<DiscordApp>, channel: ChannelId, guild: GuildId) {
    send_to_channel(app, channel, Some(guild), || ChannelEvent::RightsChanged);
    for thread in readable_threads(app).filter(|thread| thread.parent == channel) {
        send_to_channel(app, thread.id, Some(guild), || ChannelEvent::RightsChanged);
    }
}

/// Handles a change that may affect Chorus's permissions in the channels of a guild.
pub(crate) fn on_guild_rights_changed(app: &Arc<DiscordApp>, guild: GuildId) {
    send_to_all(app, |of| of == Some(guild), || ChannelEvent::RightsChanged);
}

/// Sends an event to the agents' channels in the guilds that match `of`, and to the threads that are read below them.
fn send_to_all(app: &Arc<DiscordApp>, of: impl Fn(Option<GuildId>) -> bool, note: impl Fn() -> ChannelEvent) {
    for agent in app.ops.agents.all().into_iter().chain(app.channels.others.all()) {
        if let Some((channel, guild)) = app.channels.channel_of(agent.settings.id).filter(|(_, guild)| of(*guild)) {
            send_to_channel(app, channel, guild, &note);
        }
    }
    for thread in readable_threads(app).filter(|thread| of(Some(thread.guild))) {
        send_to_channel(app, thread.id, Some(thread.guild), &note);
    }
}

/// Returns the threads that were read before and are not known to be archived. After a resumed session that is not known
/// of any; those whose conversation is closed were archived.
fn readable_threads(app: &DiscordApp) -> impl Iterator<Item = Arc<threads::Thread>> {
    app.channels.threads.all().into_iter().filter(|thread| {
        let is_closed = || {
            let agent = app.channels.agent_of(thread.parent)?;
            let row = conversations::of_thread(&app.ops, agent.settings.id, thread.id)?;
            row.closed_at
        };
        thread.is_recorded && thread.archived.map_or_else(|| is_closed().is_none(), |archived| !archived)
    })
}

/// Sends an event to the worker of a channel or thread of an agent, without waiting.
fn send_to_channel(
    app: &Arc<DiscordApp>,
    channel: ChannelId,
    guild: Option<GuildId>,
    note: impl FnOnce() -> ChannelEvent,
) {
    // Its agent may have moved to another node, which the worker finds out.
    let worker = || app.inbound.workers.lock().get(&channel).map(|(shard, _)| *shard);
    let worker = app.tables.shared.as_ref().and_then(|_| worker());
    let is_known = worker.is_some() || app.channels.target_of(channel).is_some();
    if is_known && guild.is_none_or(|guild| app.channels.serves(guild)) {
        // With several shards, a channel of an unknown server is read once that is known.
        let known = guild.map(Some).or_else(|| app.channels.guild_of(channel));
        let shard = known.map(|guild| app.shards.of(guild)).or(worker);
        if let Some(shard) = shard.or_else(|| (app.shards.count() == 1).then_some(0)) {
            send_to_worker(app, channel, shard, note());
        }
    }
}

fn send_to_worker(app: &Arc<DiscordApp>, channel: ChannelId, shard: u32, note: ChannelEvent) {
    let mut lines = app.inbound.workers.lock();
    // One that was started just after the end of a term ended at once.
    if lines.get(&channel).is_some_and(|(_, handle)| handle.has_ended()) {
        lines.remove(&channel);
    }
    lines.entry(channel).or_insert_with(|| (shard, ChannelHandle::start(app, channel, shard))).1.send(note);
}

/// Stores the new text of a claimed message.
async fn store_edit(tables: &DiscordTables, message: MessageId, asked: &MessageRequest) {
    let Ok(asked) = serde_json::to_string(asked) else { return };
    if let Err(failure) = tables.claims.update_request(message.get(), asked).await {
        tracing::warn!(%message, %failure, "cannot store an edited message");
    }
}
