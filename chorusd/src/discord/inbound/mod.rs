//! Messages in: what people write in the channels of agents. Each is taken up once, on the disk, before anybody works on it; then they are
//! carried out one after the other for each agent.

mod backfill;
mod channel;
mod desk;
mod ear;
mod fetch;
mod files;
mod heard;
mod lines;
mod text;
mod threads;
mod turn;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use heard::Asked;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{ChannelId, GuildId, MessageId};
pub use text::Channels;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use uuid::Uuid;

use self::channel::{Line, Note};
use self::desk::Desks;
use self::fetch::Fetch;
use super::bridge::Bridge;
use crate::config::discord::Discord as Config;
use crate::ops::discord::claims::{self, OpenClaim};
use crate::ops::discord::settle;

/// Channels that are read at once.
const READING: usize = 4;
/// Before what came to nothing is tried again; twice as long each time.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// A message that was taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub message: MessageId,
    pub channel: ChannelId,
    pub agent: Uuid,
    pub asked: Asked,
    /// The daemon before took it up.
    pub again: bool,
}

impl Claim {
    /// The key of its turn: however often it is asked, it is done once.
    #[must_use]
    pub fn key(&self) -> String {
        format!("discord:{}", self.message)
    }
}

/// What is heard in channels, and waits to be answered.
#[derive(Debug)]
pub struct Inbound {
    lines: Mutex<HashMap<ChannelId, Line>>,
    desks: Desks,
    fetch: Fetch,
    reading: Semaphore,
    /// Channels that were told that nothing can be read in them.
    unread: Mutex<HashSet<ChannelId>>,
    looked: threads::Looked,
}

impl Inbound {
    /// Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            lines: Mutex::default(),
            desks: Desks::default(),
            fetch: Fetch::new(config)?,
            reading: Semaphore::new(READING),
            unread: Mutex::default(),
            looked: threads::Looked::default(),
        })
    }

    /// Whether a channel is still to be told that nothing can be read in it.
    fn tell_unread(&self, channel: ChannelId) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).insert(channel)
    }
}

/// Takes up what the daemon before did not come to answer. What comes later stands behind it: it is read first, however long that takes.
pub async fn begin(bridge: &Arc<Bridge>) {
    let mut pause = FIRST;
    let open = loop {
        match claims::open(&bridge.ops).await {
            Ok(open) => break open,
            Err(failure) => tracing::error!(%failure, "messages that wait cannot be read now"),
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LONGEST),
            () = bridge.stop.cancelled() => return,
        }
    };
    for row in open {
        match claim(&row) {
            Some(claim) => bridge.inbound.desks.put(bridge, claim),
            None => give_up(bridge, &row).await,
        }
    }
}

fn claim(row: &OpenClaim) -> Option<Claim> {
    Some(Claim {
        message: id(row.message)?,
        channel: ChannelId::new(row.channel.max(1)),
        agent: row.agent,
        asked: serde_json::from_str(&row.asked).ok()?,
        again: true,
    })
}

fn id(message: u64) -> Option<MessageId> {
    (message != 0).then(|| MessageId::new(message))
}

/// What was taken up cannot be read: whoever wrote it is told.
async fn give_up(bridge: &Bridge, row: &OpenClaim) {
    tracing::error!(message = row.message, "a message that waits cannot be read; it is not answered");
    let channel = ChannelId::new(row.channel.max(1));
    let line = lines::unreadable(channel, id(row.message));
    if let Err(failure) = settle(&bridge.ops, row.message, line.into_iter().collect()).await {
        tracing::warn!(message = row.message, %failure, "it is looked at again at the next start");
    }
    bridge.posts.wake(channel);
}

/// Somebody wrote something.
pub fn message(bridge: &Arc<Bridge>, message: Message) {
    let (channel, guild) = (message.channel_id, message.guild_id);
    if bridge.rooms.agent_of(channel).is_none() {
        return threads::message(bridge, &message);
    }
    pass(bridge, channel, guild, || Note::Message(Box::new(message)));
}

/// Somebody changed a message.
pub fn edited(bridge: &Arc<Bridge>, event: MessageUpdateEvent) {
    let (channel, guild) = (event.channel_id, event.guild_id);
    pass(bridge, channel, guild, || Note::Edited(Box::new(event)));
}

/// Messages were deleted.
pub fn deleted(bridge: &Arc<Bridge>, channel: ChannelId, guild: Option<GuildId>, messages: Vec<MessageId>) {
    pass(bridge, channel, guild, || Note::Deleted(messages));
}

/// There is a new connection: every channel is read before anything that is told from now on is taken up.
pub fn connected(bridge: &Arc<Bridge>) {
    every(bridge, |_| true, || Note::Connected);
}

/// A server is there, maybe again after it was not: so are its channels.
pub fn there(bridge: &Arc<Bridge>, guild: GuildId) {
    every(bridge, |of| of == Some(guild), || Note::Connected);
}

/// Chorus may have other rights in a channel.
pub fn rights(bridge: &Arc<Bridge>, channel: ChannelId, guild: GuildId) {
    pass(bridge, channel, Some(guild), || Note::Rights);
}

/// Chorus may have other rights in the channels of a server.
pub fn rights_in(bridge: &Arc<Bridge>, guild: GuildId) {
    every(bridge, |of| of == Some(guild), || Note::Rights);
}

/// Tells the channels of agents in these servers.
fn every(bridge: &Arc<Bridge>, of: impl Fn(Option<GuildId>) -> bool, note: impl Fn() -> Note) {
    for agent in bridge.ops.directory.all() {
        if let Some((channel, guild)) = bridge.rooms.channel_of(agent.facts.id).filter(|(_, guild)| of(*guild)) {
            pass(bridge, channel, guild, &note);
        }
    }
}

/// Waits for nothing: the task of the channel does the rest.
fn pass(bridge: &Arc<Bridge>, channel: ChannelId, guild: Option<GuildId>, note: impl FnOnce() -> Note) {
    if bridge.rooms.agent_of(channel).is_none() || guild.is_some_and(|guild| !bridge.rooms.serves(guild)) {
        return;
    }
    let mut lines = bridge.inbound.lines.lock().unwrap_or_else(PoisonError::into_inner);
    lines.entry(channel).or_insert_with(|| Line::open(bridge, channel)).pass(note());
}

/// Keeps what a message says now.
async fn reword(bridge: &Bridge, message: MessageId, asked: &Asked) {
    let Ok(asked) = serde_json::to_string(asked) else { return };
    if let Err(failure) = claims::reword(&bridge.ops, message.get(), asked).await {
        tracing::warn!(%message, %failure, "a change of a message is not kept");
    }
}
