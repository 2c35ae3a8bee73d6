//! One connection to the gateway, from the first byte to the last.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serenity::model::event::Event as Dispatch;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{CloseFrame, Config, ConfigBuilder, Message, Shard, ShardId, ShardState};

use super::closed::{self, ForGood};
use super::deliver::Deliver;
use super::identify::{Identify, Refused};
use super::keeper::Keeper;
use super::read::{Said, read};
use super::tunnel::{self, Tunnel};
use crate::discord::address;
use crate::discord::bridge::Bridge;
use crate::discord::event::Event;
use crate::ops::discord::session::Session;

/// Until the gateway says the first word; its library has a limit of its own for connecting, 11 s with its pause.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// From one word to the next until the session is there.
const NEXT_WORD: Duration = Duration::from_secs(60);
/// Events told before READY that are held back; what comes beyond is looked for as after an outage.
const EARLY: usize = 1000;
/// For the last word. Less than the library's pause before it would connect again.
const LAST_WORD: Duration = Duration::from_millis(800);

/// Why a connection ended.
#[derive(Debug)]
pub enum End {
    /// The daemon stops.
    Asked,
    ForGood(ForGood),
    Refused(Refused),
    /// Not before this has passed.
    Limited(Duration),
    Lost {
        why: String,
        /// How long it was there.
        stayed: Option<Duration>,
        /// There was a connection at all.
        reached: bool,
    },
}

/// What a connection talks to.
#[derive(Debug)]
pub struct Ears {
    pub deliver: Deliver,
    /// The servers that it is in.
    pub guilds: HashSet<u64>,
    pub keeper: Keeper,
}

/// Where a connection goes, and what it goes on with.
#[derive(Debug)]
pub struct Way<'w> {
    pub base: &'w Config<()>,
    pub url: &'w str,
    pub kept: Option<&'w Session>,
    /// The daemon before had the session. Commands that are told again are none any more.
    pub again: bool,
}

/// Connects, hands on what it hears, and tells how it ended and what can be taken up.
pub async fn hold(bridge: &Arc<Bridge>, ears: &mut Ears, way: Way<'_>) -> (End, Option<Session>) {
    let tunnel = match tunnel::is_wanted_here(way.url) {
        true => match Tunnel::open(way.url).await {
            Ok(tunnel) => Some(tunnel),
            Err(why) => {
                let why = format!("Discord cannot be reached by way of the proxy: {why}");
                let kept = way.kept.cloned();
                return (End::Lost { why, stayed: None, reached: false }, kept);
            }
        },
        false => None,
    };
    let url = tunnel.as_ref().map_or(way.url, |tunnel| &tunnel.url);
    let (refuse, mut refused) = mpsc::channel(1);
    let identify = Identify { bridge: bridge.clone(), refused: refuse };
    let mut config = ConfigBuilder::from(way.base.clone()).queue(identify).proxy_url(url.to_owned());
    if let Some(kept) = way.kept {
        config = config.session(twilight_gateway::Session::new(kept.sequence, kept.id.clone()));
    }
    let mut line = Line {
        bridge,
        ears,
        shard: Shard::with_config(ShardId::ONE, config.build()),
        up: None,
        until: Instant::now() + FIRST_WORD,
        url: way.url,
        tunnel: tunnel.as_ref(),
        resume_url: way.kept.and_then(|kept| kept.url.clone()),
        again: way.again,
        anew: way.kept.is_none(),
        early: Vec::new(),
    };
    let (mut parted, mut over) = (false, false);
    let end = loop {
        tokio::select! {
            biased;
            () = bridge.stop.cancelled() => {
                let kept = line.kept();
                if line.up.is_some() {
                    line.shard.close(CloseFrame::RESUME);
                    line.part().await;
                }
                return (End::Asked, kept);
            }
            Some((why, _leave)) = refused.recv() => break End::Refused(why),
            () = sleep_until(line.until), if line.up.is_none() => break line.lost("Discord does not answer"),
            said = line.shard.next() => match said {
                Some(Ok(Message::Text(text))) => if let Some(end) = line.heard(&text) {
                    parted = true;
                    break end;
                },
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map(|frame| frame.code);
                    over = code.is_some_and(closed::ends_session);
                    break line.closed(code);
                }
                Some(Err(e)) => if let Some(end) = line.failed(&e) { break end },
                None => break line.lost("the connection ended"),
            },
        }
    };
    // Before the last words: what comes with them is told again.
    let kept = line.kept().filter(|_| !over && !matches!(end, End::ForGood(_)));
    if line.up.is_some() {
        line.ears.deliver.give(Event::Disconnected);
    }
    if parted {
        line.part().await;
    }
    (end, kept)
}

/// The connection while it is there.
struct Line<'l> {
    bridge: &'l Bridge,
    ears: &'l mut Ears,
    shard: Shard<Identify>,
    /// Since when there is a session.
    up: Option<Instant>,
    /// Until then there must be another word.
    until: Instant,
    url: &'l str,
    /// The way by a proxy, if there is one.
    tunnel: Option<&'l Tunnel>,
    resume_url: Option<String>,
    /// What is told again is being told.
    again: bool,
    /// It asked for a new session, whose READY says from when on everything is told.
    anew: bool,
    /// Events of a new session that were told before its READY.
    early: Vec<Dispatch>,
}

impl Ears {
    /// Hands on what was told, and counts servers.
    pub fn hear(&mut self, bridge: &Bridge, event: Box<Dispatch>) {
        match &*event {
            Dispatch::Ready(ready) => self.guilds = ready.ready.guilds.iter().map(|guild| guild.id.get()).collect(),
            Dispatch::GuildCreate(event) => _ = self.guilds.insert(event.guild.id.get()),
            // One that is only out of reach is still ours.
            Dispatch::GuildDelete(event) if !event.guild.unavailable => {
                self.guilds.remove(&event.guild.id.get());
            }
            _ => {}
        }
        bridge.ops.discord.set_guilds(self.guilds.len() as u64);
        self.deliver.give(Event::Dispatch(event));
    }
}

impl Line<'_> {
    /// Deals with what it said; an end, where that was its last word.
    fn heard(&mut self, text: &str) -> Option<End> {
        match read(text) {
            Said::Hello => self.until = Instant::now() + NEXT_WORD,
            Said::Own => self.ears.deliver.catch_up(),
            Said::Resumed => self.opened(true),
            Said::Unreadable { kind, why, seq } => {
                tracing::warn!(kind, why, seq, "an event of Discord cannot be read");
            }
            Said::Dispatch { event, seq } => {
                tracing::trace!(seq, "an event of Discord");
                self.until = Instant::now() + NEXT_WORD;
                self.dispatch(event);
            }
        }
        let parted = matches!(self.shard.state(), ShardState::Disconnected { .. } | ShardState::FatallyClosed);
        parted.then(|| {
            let over = self.shard.session().is_none();
            self.lost(if over { "the session is over" } else { "Discord wants a new connection" })
        })
    }

    fn dispatch(&mut self, event: Box<Dispatch>) {
        if self.again && matches!(*event, Dispatch::InteractionCreate(_)) {
            tracing::info!("a command was given while nobody was here to hear it");
            return;
        }
        let ready = match &*event {
            Dispatch::Ready(ready) => {
                self.resume_url = address::gateway(&ready.ready.resume_gateway_url, self.url);
                true
            }
            _ => false,
        };
        // Handed on now, a message would say that its channel was read so far, and what was written during the outage would never be read.
        if self.anew && self.up.is_none() && !ready {
            return self.hold_back(event);
        }
        self.ears.hear(self.bridge, event);
        if ready {
            self.opened(false);
            std::mem::take(&mut self.early).into_iter().for_each(|event| self.ears.hear(self.bridge, Box::new(event)));
        } else if self.ears.keeper.is_due() && self.up.is_some() {
            let kept = self.kept();
            self.ears.keeper.keep(kept.as_ref());
        }
    }

    /// Keeps an event until READY has come. A session that ends before is asked for anew, and what it told is read then.
    fn hold_back(&mut self, event: Box<Dispatch>) {
        if self.early.len() < EARLY {
            self.early.push(*event);
        } else {
            tracing::debug!("Discord tells too much before READY; messages are looked for later");
        }
    }

    fn opened(&mut self, resumed: bool) {
        tracing::info!(resumed, "connected to Discord");
        self.up = Some(Instant::now());
        self.again = false;
        let kept = self.kept();
        self.ears.keeper.keep(kept.as_ref());
        self.bridge.ops.discord.opened();
        self.ears.deliver.give(Event::Connected { resumed });
    }

    fn closed(&self, code: Option<u16>) -> End {
        code.and_then(closed::for_good).map_or_else(|| self.lost(&closed::told(code)), End::ForGood)
    }

    fn failed(&self, error: &twilight_gateway::error::ReceiveMessageError) -> Option<End> {
        match error.kind() {
            ReceiveMessageErrorType::Deserializing { .. } => {
                tracing::warn!("something that Discord said cannot be read");
                None
            }
            _ => {
                // Of a way that leads nowhere the library sees only that it ended.
                let way = self.tunnel.and_then(Tunnel::why).map(|why| format!("by way of the proxy: {why}"));
                let why = way
                    .unwrap_or_else(|| std::error::Error::source(error).map_or_else(|| error.to_string(), innermost));
                Some(End::Lost {
                    why: format!("Discord cannot be reached: {why}"),
                    stayed: self.stayed(),
                    reached: false,
                })
            }
        }
    }

    fn lost(&self, why: &str) -> End {
        End::Lost { why: why.to_owned(), stayed: self.stayed(), reached: true }
    }

    fn stayed(&self) -> Option<Duration> {
        self.up.map(|up| up.elapsed())
    }

    fn kept(&self) -> Option<Session> {
        let session = self.shard.session()?;
        Some(self.ears.keeper.session(session.id(), session.sequence(), self.resume_url.clone()))
    }

    /// Closes the connection with the code that is set, and gives the other side a moment to hear it.
    async fn part(&mut self) {
        let words = async { while let Some(Ok(Message::Text(_))) = self.shard.next().await {} };
        let _ = timeout(LAST_WORD, words).await;
    }
}

/// The words of the error that led to all others.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
