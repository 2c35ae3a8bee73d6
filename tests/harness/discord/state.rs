//! The state that all parts of the fake share.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use chorus_base::sync::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;

use super::faults::FaultRule;
use super::gateway::session::{Connection, Session};
use super::http::RecordedRequest;
use super::messages::Message;
use super::objects::{Channel, Guild, PRIVATE_THREAD_CHANNEL, User};
use super::permissions::MANAGE_THREADS;
use super::rest::rate_limit::RateLimits;
use super::snowflake::Snowflakes;

/// A command, a button press, or an autocomplete request.
#[derive(Debug, Clone)]
pub struct InteractionRecord {
    pub id: u64,
    pub token: String,
    /// 2: a command, 3: a button, 4: autocomplete.
    pub kind: u64,
    pub channel: u64,
    pub user: u64,
    pub metadata: Value,
    pub at: Instant,
    /// Whether the application was connected when it was sent.
    pub was_connected: bool,
    /// The message of the button.
    pub message: Option<u64>,
    /// The type of the initial response, and when it arrived.
    pub callback: Option<(u64, Instant)>,
    /// The message that `@original` refers to.
    pub original: Option<u64>,
    /// The messages that were created or edited as responses, in order.
    pub responses: Vec<u64>,
    pub choices: Option<Value>,
    /// The form that was shown.
    pub form: Option<Value>,
}

/// How many sessions the application may begin.
#[derive(Debug, Clone, Copy)]
pub struct StartLimit {
    pub total: u64,
    pub remaining: u64,
    pub reset_after: Duration,
}

/// The state of the fake.
#[derive(Debug)]
pub struct State {
    pub snowflakes: Snowflakes,
    /// `http://127.0.0.1:PORT`.
    pub rest_url: String,
    /// `ws://127.0.0.1:PORT`.
    pub gateway_url: String,
    pub token: String,
    /// The id of the application and of its user.
    pub application_id: u64,
    pub users: BTreeMap<u64, User>,
    pub guilds: Vec<Guild>,
    pub channels: BTreeMap<u64, Channel>,
    pub messages: BTreeMap<u64, Message>,
    /// Deleted messages.
    pub deleted: Vec<Message>,
    /// Commands by guild; 0 stands for global ones.
    pub commands: BTreeMap<u64, Vec<Value>>,
    /// How often a list of commands was registered.
    pub registrations: usize,
    pub interactions: BTreeMap<u64, InteractionRecord>,
    pub sessions: BTreeMap<String, Session>,
    pub connections: BTreeMap<u64, Connection>,
    pub is_refusing: bool,
    pub message_content: bool,
    pub heartbeat: Duration,
    /// The longest time between two heartbeats of a connection.
    pub longest_heartbeat_gap: Duration,
    /// How long an interaction waits for its initial response.
    pub interaction_timeout: Duration,
    pub start_limit: StartLimit,
    pub identify_interval: Duration,
    /// Messages that the next new session receives before its READY.
    pub before_ready: Vec<Value>,
    /// The last one of each bucket.
    pub identified_at: BTreeMap<u64, Instant>,
    /// Buckets of IDENTIFYs.
    pub max_concurrency: u64,
    /// The number of shards that `GET /gateway/bot` recommends.
    pub recommended_shards: u64,
    /// Guilds that a shard may have at most.
    pub max_guilds: usize,
    pub identifies: usize,
    pub identifies_refused: usize,
    pub resumes: usize,
    /// How many of the next RESUMEs fail.
    pub resumes_to_fail: usize,
    /// When RESUMEs failed.
    pub failed_resumes: Vec<Instant>,
    /// How long the nonce of a message is recognized.
    pub nonce_window: Duration,
    pub buckets: RateLimits,
    pub faults: Vec<FaultRule>,
    pub open_gates: HashSet<String>,
    pub reached_gates: HashSet<String>,
    pub requests: Vec<RecordedRequest>,
    pub violations: Vec<String>,
    pub closing: bool,
}

impl State {
    pub fn record_violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    pub fn guild(&self, id: u64) -> Option<&Guild> {
        self.guilds.iter().find(|guild| guild.id == id)
    }

    pub fn guild_mut(&mut self, id: u64) -> Option<&mut Guild> {
        self.guilds.iter_mut().find(|guild| guild.id == id)
    }

    /// Returns the permissions of a user in a channel.
    pub fn permissions(&self, channel: u64, user: u64) -> u64 {
        let Some(channel) = self.channels.get(&channel) else { return 0 };
        if channel.direct_with.is_some() {
            return super::permissions::EVERYONE_DEFAULT;
        }
        let base = self.guild(channel.guild).map_or(0, |guild| guild.permissions(user));
        // Members and moderators only: https://docs.discord.com/developers/topics/threads#private-threads.
        let is_hidden =
            channel.kind == PRIVATE_THREAD_CHANNEL && user == self.application_id && !channel.has_application;
        if is_hidden && base & MANAGE_THREADS == 0 {
            return 0;
        }
        // Threads inherit the permissions of the channel that they are below: https://docs.discord.com/developers/topics/threads.
        let parent = channel.parent.filter(|_| channel.is_thread());
        parent.and_then(|parent| self.channels.get(&parent)).unwrap_or(channel).permissions(base, user)
    }

    /// Returns the messages of a channel that everybody sees, the oldest first.
    pub fn public_messages(&self, channel: u64) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages.values().filter(move |message| message.channel == channel && message.ephemeral_for.is_none())
    }
}

/// The state, and the notification that wakes connections when it changes.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    pub changed: Notify,
}

impl Shared {
    pub fn new(state: State) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_waiters();
        changed
    }

    /// Waits until `until` returns a value.
    pub async fn wait_for<T>(&self, mut until: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            // Registers before the check, so that no change is missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = until(&mut self.state()) {
                return found;
            }
            changed.await;
        }
    }
}
