//! One connection to the gateway, from connecting to its end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::gateway_session::GatewaySession;
use futures_util::StreamExt as _;
use serenity::model::event::Event as Dispatch;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{CloseFrame, Config, ConfigBuilder, Message, Shard, ShardId, ShardState};

use super::close_codes::{self, PermanentClose};
use super::event_parse::{Payload, parse_payload};
use super::event_sender::EventSender;
use super::identify_queue::{IdentifyDenied, IdentifyQueue};
use super::session_store::GatewaySessionStore;
use super::tunnel::{self, Tunnel};
use crate::app::DiscordApp;
use crate::gateway_event::GatewayEvent;
use crate::url_checks;

/// Time until the gateway's first message (HELLO). The library has a limit of its own for connecting, 11 s with its
/// pause.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Time from one message to the next until the session is ready.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// Events before READY that are buffered; if there are more, messages are backfilled as after an outage.
const MAX_EARLY_EVENTS: usize = 1000;
/// Time for the close handshake. Less than the library's pause before it would connect again.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(800);

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// The daemon stops, or this node has the gateway no more.
    Stopped,
    Permanent(PermanentClose),
    IdentifyDenied(IdentifyDenied),
    /// The rate limit allows no connection before this time has passed.
    RateLimited(Duration),
    Lost {
        why: String,
        /// How long the session was open.
        stayed: Option<Duration>,
        /// The gateway was reached at all.
        reached: bool,
    },
}

/// State of the gateway that outlives a connection.
#[derive(Debug)]
pub(super) struct GatewayState {
    pub shard: u32,
    pub events: EventSender,
    /// The guilds that the application is in.
    pub guilds: HashSet<u64>,
    pub session_store: GatewaySessionStore,
}

/// Where to connect, and which session to resume.
#[derive(Debug)]
pub(super) struct ConnectOptions<'w> {
    pub base: &'w Config<()>,
    pub url: &'w str,
    pub session: Option<&'w GatewaySession>,
    /// The session was begun by the previous daemon. Interactions that are replayed have expired.
    pub is_inherited: bool,
}

/// Runs one connection and forwards its events. Returns why it ended, and the session that can be resumed.
pub(super) async fn run_connection(
    app: &Arc<DiscordApp>,
    ears: &mut GatewayState,
    way: ConnectOptions<'_>,
) -> (ConnectionEnd, Option<GatewaySession>) {
    let tunnel = match tunnel::is_proxy_set_in_env(way.url) {
        true => match Tunnel::open(way.url).await {
            Ok(tunnel) => Some(tunnel),
            Err(why) => {
                let why = format!("cannot reach Discord through the proxy: {why}");
                let kept = way.session.cloned();
                return (ConnectionEnd::Lost { why, stayed: None, reached: false }, kept);
            }
        },
        false => None,
    };
    let url = tunnel.as_ref().map_or(way.url, |tunnel| &tunnel.url);
    let (refuse, mut refused) = mpsc::channel(1);
    let identify = IdentifyQueue { app: app.clone(), shard: ears.shard, denied: refuse };
    let mut config = ConfigBuilder::from(way.base.clone()).queue(identify).proxy_url(url.to_owned());
    if let Some(kept) = way.session {
        config = config.session(twilight_gateway::Session::new(kept.sequence, kept.id.clone()));
    }
    let shard = ears.shard;
    let mut line = Connection {
        app,
        state: ears,
        shard: Shard::with_config(ShardId::new(shard, app.shards.count()), config.build()),
        opened_at: None,
        deadline: Instant::now() + HELLO_TIMEOUT,
        url: way.url,
        tunnel: tunnel.as_ref(),
        resume_url: way.session.and_then(|kept| kept.url.clone()),
        is_inherited: way.is_inherited,
        is_new_session: way.session.is_none(),
        early_events: Vec::new(),
    };
    let stop = app.shards.term(shard);
    let (mut parted, mut over) = (false, false);
    let end = loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                let kept = line.session();
                if line.opened_at.is_some() {
                    line.shard.close(CloseFrame::RESUME);
                    line.wait_for_close().await;
                }
                return (ConnectionEnd::Stopped, kept);
            }
            Some((why, _leave)) = refused.recv() => break ConnectionEnd::IdentifyDenied(why),
            () = sleep_until(line.deadline), if line.opened_at.is_none() => break line.connection_lost("Discord does not respond"),
            said = line.shard.next() => match said {
                Some(Ok(Message::Text(text))) => if let Some(end) = line.handle_text(&text) {
                    parted = true;
                    break end;
                },
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map(|frame| frame.code);
                    over = code.is_some_and(close_codes::ends_session);
                    break line.end_for_close(code);
                }
                Some(Err(e)) => if let Some(end) = line.end_for_error(&e) { break end },
                None => break line.connection_lost("the connection ended"),
            },
        }
    };
    // Taken before the remaining messages are read: those are replayed after a resume.
    let kept = line.session().filter(|_| !over && !matches!(end, ConnectionEnd::Permanent(_)));
    if line.opened_at.is_some() {
        line.state.events.send(GatewayEvent::Disconnected);
    }
    if parted {
        line.wait_for_close().await;
    }
    (end, kept)
}

/// An established connection.
struct Connection<'l> {
    app: &'l DiscordApp,
    state: &'l mut GatewayState,
    shard: Shard<IdentifyQueue>,
    /// When the session was opened.
    opened_at: Option<Instant>,
    /// The next message must arrive before this time.
    deadline: Instant,
    url: &'l str,
    /// The tunnel through a proxy, if there is one.
    tunnel: Option<&'l Tunnel>,
    resume_url: Option<String>,
    /// Events of the previous daemon's session are being replayed.
    is_inherited: bool,
    /// A new session was requested; every event after its READY is received.
    is_new_session: bool,
    /// Events of a new session that arrived before its READY.
    early_events: Vec<Dispatch>,
}

impl GatewayState {
    /// Forwards an event, and counts the guilds.
    pub(super) fn dispatch(&mut self, ops: &Ops, event: Box<Dispatch>) {
        match &*event {
            Dispatch::Ready(ready) => self.guilds = ready.ready.guilds.iter().map(|guild| guild.id.get()).collect(),
            Dispatch::GuildCreate(event) => _ = self.guilds.insert(event.guild.id.get()),
            // A guild that is unavailable still counts.
            Dispatch::GuildDelete(event) if !event.guild.unavailable => {
                self.guilds.remove(&event.guild.id.get());
            }
            _ => {}
        }
        ops.discord.set_guild_count(self.shard, self.guilds.len() as u64);
        self.events.send(GatewayEvent::Dispatch(event));
    }
}

impl Connection<'_> {
    /// Handles a message of the gateway. Returns the end of the connection if it was the last one.
    fn handle_text(&mut self, text: &str) -> Option<ConnectionEnd> {
        match parse_payload(text) {
            // The turns of other shards may come first.
            Payload::Hello => {
                let shards = &self.app.shards;
                let wait = shards.identify_turns.longest_wait(shards.count());
                self.deadline = Instant::now() + wait + SESSION_TIMEOUT;
            }
            Payload::Control => self.state.events.report_missed(),
            Payload::Resumed => self.mark_opened(true),
            Payload::Unreadable { kind, why, seq } => {
                tracing::warn!(kind, why, seq, "cannot parse a Discord event");
            }
            Payload::Dispatch { event, seq } => {
                tracing::trace!(seq, "a Discord event");
                self.deadline = Instant::now() + SESSION_TIMEOUT;
                self.handle_dispatch(event);
            }
        }
        let parted = matches!(self.shard.state(), ShardState::Disconnected { .. } | ShardState::FatallyClosed);
        parted.then(|| {
            let over = self.shard.session().is_none();
            self.connection_lost(if over { "the session ended" } else { "Discord requested a new connection" })
        })
    }

    fn handle_dispatch(&mut self, event: Box<Dispatch>) {
        if self.is_inherited && matches!(*event, Dispatch::InteractionCreate(_)) {
            tracing::info!("missed a command while disconnected");
            return;
        }
        let ready = match &*event {
            Dispatch::Ready(ready) => {
                self.resume_url = url_checks::normalize_gateway_url(&ready.ready.resume_gateway_url, self.url);
                true
            }
            _ => false,
        };
        // If such a message were forwarded now, it would be recorded as the last one read in its channel, and messages
        // from the outage before it would never be read.
        if self.is_new_session && self.opened_at.is_none() && !ready {
            return self.buffer_early(event);
        }
        self.state.dispatch(&self.app.ops, event);
        if ready {
            self.mark_opened(false);
            std::mem::take(&mut self.early_events)
                .into_iter()
                .for_each(|event| self.state.dispatch(&self.app.ops, Box::new(event)));
        } else if self.state.session_store.is_due() && self.opened_at.is_some() {
            let kept = self.session();
            self.state.session_store.store(kept.as_ref());
        }
    }

    /// Buffers an event until READY. If the session ends before, a new one is requested, and the messages are
    /// backfilled.
    fn buffer_early(&mut self, event: Box<Dispatch>) {
        if self.early_events.len() < MAX_EARLY_EVENTS {
            self.early_events.push(*event);
        } else {
            tracing::debug!("too many Discord events before READY; fetching missed messages later");
        }
    }

    fn mark_opened(&mut self, resumed: bool) {
        tracing::info!(resumed, "connected to Discord");
        self.opened_at = Some(Instant::now());
        self.is_inherited = false;
        let kept = self.session();
        self.state.session_store.store(kept.as_ref());
        self.app.ops.discord.on_opened(self.state.shard);
        self.state.events.send(GatewayEvent::Connected { resumed });
    }

    fn end_for_close(&self, code: Option<u16>) -> ConnectionEnd {
        code.and_then(close_codes::permanent_close)
            .map_or_else(|| self.connection_lost(&close_codes::describe_close(code)), ConnectionEnd::Permanent)
    }

    fn end_for_error(&self, error: &twilight_gateway::error::ReceiveMessageError) -> Option<ConnectionEnd> {
        match error.kind() {
            ReceiveMessageErrorType::Deserializing { .. } => {
                tracing::warn!("cannot parse a message from Discord");
                None
            }
            _ => {
                // If the tunnel fails, the library only sees that the connection ended.
                let way = self.tunnel.and_then(Tunnel::last_error).map(|why| format!("through the proxy: {why}"));
                let why = way
                    .unwrap_or_else(|| std::error::Error::source(error).map_or_else(|| error.to_string(), root_cause));
                Some(ConnectionEnd::Lost {
                    why: format!("cannot reach Discord: {why}"),
                    stayed: self.uptime(),
                    reached: false,
                })
            }
        }
    }

    fn connection_lost(&self, why: &str) -> ConnectionEnd {
        ConnectionEnd::Lost { why: why.to_owned(), stayed: self.uptime(), reached: true }
    }

    fn uptime(&self) -> Option<Duration> {
        self.opened_at.map(|up| up.elapsed())
    }

    fn session(&self) -> Option<GatewaySession> {
        let session = self.shard.session()?;
        Some(self.state.session_store.build_session(session.id(), session.sequence(), self.resume_url.clone()))
    }

    /// Closes the connection with the code that was set, and waits a moment for the other side.
    async fn wait_for_close(&mut self) {
        let words = async { while let Some(Ok(Message::Text(_))) = self.shard.next().await {} };
        let _ = timeout(CLOSE_TIMEOUT, words).await;
    }
}

/// Returns the text of the error at the end of the chain of sources.
pub(super) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
