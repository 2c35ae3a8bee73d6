//! Messages in: what people write in the channels of agents. Each is taken up once, on the disk, before anybody works on it; then they are
//! carried out one after the other for each agent.

mod attachments;
mod backfill;
mod channel_worker;
mod download;
mod message_text;
mod process;
mod queue;
mod request;
mod service_messages;
mod threads;
mod turn_stage;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use message_text::ChannelNames;
pub use request::MessageRequest;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{ChannelId, GuildId, MessageId};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use uuid::Uuid;

use self::channel_worker::{ChannelEvent, ChannelHandle};
use self::download::Downloader;
use self::queue::AgentQueues;
use super::app::DiscordApp;
use crate::config::discord::DiscordConfig as Config;
use crate::ops::discord::claims::{self, OpenClaim};
use crate::ops::discord::finish_claim;

/// Channels that are read at once.
const MAX_CONCURRENT_BACKFILLS: usize = 4;
/// Before what came to nothing is tried again; twice as long each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// A message that was taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub message: MessageId,
    pub channel: ChannelId,
    pub agent: Uuid,
    pub request: MessageRequest,
    /// The daemon before took it up.
    pub is_inherited: bool,
}

impl Claim {
    /// The key of its turn: however often it is asked, it is done once.
    #[must_use]
    pub fn turn_key(&self) -> String {
        format!("discord:{}", self.message)
    }
}

/// What is heard in channels, and waits to be answered.
#[derive(Debug)]
pub struct Inbound {
    workers: Mutex<HashMap<ChannelId, ChannelHandle>>,
    queues: AgentQueues,
    downloader: Downloader,
    backfill_permits: Semaphore,
    /// Channels that were told that nothing can be read in them.
    unreadable_reported: Mutex<HashSet<ChannelId>>,
    checked_threads: threads::CheckedThreads,
}

impl Inbound {
    /// Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            workers: Mutex::default(),
            queues: AgentQueues::default(),
            downloader: Downloader::new(config)?,
            backfill_permits: Semaphore::new(MAX_CONCURRENT_BACKFILLS),
            unreadable_reported: Mutex::default(),
            checked_threads: threads::CheckedThreads::default(),
        })
    }

    /// Whether a channel is still to be told that nothing can be read in it.
    fn mark_unreadable(&self, channel: ChannelId) -> bool {
        self.unreadable_reported.lock().unwrap_or_else(PoisonError::into_inner).insert(channel)
    }
}

/// Takes up what the daemon before did not come to answer. What comes later stands behind it: it is read first, however long that takes.
pub async fn resume_claims(bridge: &Arc<DiscordApp>) {
    let mut pause = INITIAL_BACKOFF;
    let open = loop {
        match claims::list_open(&bridge.ops).await {
            Ok(open) => break open,
            Err(failure) => tracing::error!(%failure, "messages that wait cannot be read now"),
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(MAX_BACKOFF),
            () = bridge.stop.cancelled() => return,
        }
    };
    for row in open {
        match claim_from_row(&row) {
            Some(claim) => bridge.inbound.queues.enqueue(bridge, claim),
            None => drop_unreadable(bridge, &row).await,
        }
    }
}

fn claim_from_row(row: &OpenClaim) -> Option<Claim> {
    Some(Claim {
        message: message_id(row.message)?,
        channel: ChannelId::new(row.channel.max(1)),
        agent: row.agent,
        request: serde_json::from_str(&row.request).ok()?,
        is_inherited: true,
    })
}

fn message_id(message: u64) -> Option<MessageId> {
    (message != 0).then(|| MessageId::new(message))
}

/// What was taken up cannot be read: whoever wrote it is told.
async fn drop_unreadable(bridge: &DiscordApp, row: &OpenClaim) {
    tracing::error!(message = row.message, "a message that waits cannot be read; it is not answered");
    let channel = ChannelId::new(row.channel.max(1));
    let line = service_messages::claim_unreadable(channel, message_id(row.message));
    if let Err(failure) = finish_claim(&bridge.ops, row.message, line.into_iter().collect()).await {
        tracing::warn!(message = row.message, %failure, "it is looked at again at the next start");
    }
    bridge.outbox.wake_sender(channel);
}

/// Somebody wrote something.
pub fn on_message(bridge: &Arc<DiscordApp>, message: Message) {
    let (channel, guild) = (message.channel_id, message.guild_id);
    if bridge.channels.agent_of(channel).is_none() {
        return threads::on_message(bridge, &message);
    }
    send_to_channel(bridge, channel, guild, || ChannelEvent::Message(Box::new(message)));
}

/// Somebody changed a message.
pub fn on_edit(bridge: &Arc<DiscordApp>, event: MessageUpdateEvent) {
    let (channel, guild) = (event.channel_id, event.guild_id);
    send_to_channel(bridge, channel, guild, || ChannelEvent::Edited(Box::new(event)));
}

/// Messages were deleted.
pub fn on_delete(bridge: &Arc<DiscordApp>, channel: ChannelId, guild: Option<GuildId>, messages: Vec<MessageId>) {
    send_to_channel(bridge, channel, guild, || ChannelEvent::Deleted(messages));
}

/// There is a new connection: every channel is read before anything that is told from now on is taken up.
pub fn on_connected(bridge: &Arc<DiscordApp>) {
    send_to_all(bridge, |_| true, || ChannelEvent::Connected);
}

/// A server is there, maybe again after it was not: so are its channels.
pub fn on_guild_available(bridge: &Arc<DiscordApp>, guild: GuildId) {
    send_to_all(bridge, |of| of == Some(guild), || ChannelEvent::Connected);
}

/// Chorus may have other rights in a channel.
pub fn on_channel_rights_changed(bridge: &Arc<DiscordApp>, channel: ChannelId, guild: GuildId) {
    send_to_channel(bridge, channel, Some(guild), || ChannelEvent::RightsChanged);
}

/// Chorus may have other rights in the channels of a server.
pub fn on_guild_rights_changed(bridge: &Arc<DiscordApp>, guild: GuildId) {
    send_to_all(bridge, |of| of == Some(guild), || ChannelEvent::RightsChanged);
}

/// Tells the channels of agents in these servers.
fn send_to_all(bridge: &Arc<DiscordApp>, of: impl Fn(Option<GuildId>) -> bool, note: impl Fn() -> ChannelEvent) {
    for agent in bridge.ops.agents.all() {
        if let Some((channel, guild)) = bridge.channels.channel_of(agent.settings.id).filter(|(_, guild)| of(*guild)) {
            send_to_channel(bridge, channel, guild, &note);
        }
    }
}

/// Waits for nothing: the task of the channel does the rest.
fn send_to_channel(
    bridge: &Arc<DiscordApp>,
    channel: ChannelId,
    guild: Option<GuildId>,
    note: impl FnOnce() -> ChannelEvent,
) {
    if bridge.channels.agent_of(channel).is_none() || guild.is_some_and(|guild| !bridge.channels.serves(guild)) {
        return;
    }
    let mut lines = bridge.inbound.workers.lock().unwrap_or_else(PoisonError::into_inner);
    lines.entry(channel).or_insert_with(|| ChannelHandle::start(bridge, channel)).send(note());
}

/// Keeps what a message says now.
async fn store_edit(bridge: &DiscordApp, message: MessageId, asked: &MessageRequest) {
    let Ok(asked) = serde_json::to_string(asked) else { return };
    if let Err(failure) = claims::update_request(&bridge.ops, message.get(), asked).await {
        tracing::warn!(%message, %failure, "a change of a message is not kept");
    }
}
