//! One connection to the gateway, from the first byte to the last.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serenity::model::event::Event as Dispatch;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{CloseFrame, Config, ConfigBuilder, Message, Session, Shard, ShardId, ShardState};

use super::closed::{self, ForGood};
use super::deliver::Deliver;
use super::identify::{Identify, Refused};
use super::read::{Said, read};
use crate::discord::address;
use crate::discord::bridge::Bridge;
use crate::discord::event::Event;
use crate::ops::discord::State;

/// Until the gateway says the first word; its library has a limit of its own for connecting, 11 s with its pause.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// From one word to the next until the session is there.
const NEXT_WORD: Duration = Duration::from_secs(60);
/// For the last word. Less than the library's pause before it would connect again.
const LAST_WORD: Duration = Duration::from_millis(800);

/// A session that can be taken up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub id: String,
    pub sequence: u64,
    /// `None`: where the gateway is.
    pub url: Option<String>,
}

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

/// Connects to `url`, hands on what it hears, and tells how it ended and what can be taken up.
pub async fn hold(
    bridge: &Arc<Bridge>,
    (deliver, guilds): (&mut Deliver, &mut HashSet<u64>),
    base: &Config<()>,
    url: &str,
    kept: Option<&Kept>,
) -> (End, Option<Kept>) {
    let (refuse, mut refused) = mpsc::channel(1);
    let identify = Identify { bridge: bridge.clone(), refused: refuse };
    let mut config = ConfigBuilder::from(base.clone()).queue(identify).proxy_url(url.to_owned());
    if let Some(kept) = kept {
        config = config.session(Session::new(kept.sequence, kept.id.clone()));
    }
    let mut line = Line {
        bridge,
        deliver,
        shard: Shard::with_config(ShardId::ONE, config.build()),
        guilds,
        up: None,
        until: Instant::now() + FIRST_WORD,
        url,
        resume_url: kept.and_then(|kept| kept.url.clone()),
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
        line.deliver.give(Event::Disconnected);
    }
    if parted {
        line.part().await;
    }
    (end, kept)
}

/// The connection while it is there.
struct Line<'l> {
    bridge: &'l Bridge,
    deliver: &'l mut Deliver,
    shard: Shard<Identify>,
    /// The servers that it is in.
    guilds: &'l mut HashSet<u64>,
    /// Since when there is a session.
    up: Option<Instant>,
    /// Until then there must be another word.
    until: Instant,
    url: &'l str,
    resume_url: Option<String>,
}

impl Line<'_> {
    /// Deals with what it said; an end, where that was its last word.
    fn heard(&mut self, text: &str) -> Option<End> {
        match read(text) {
            Said::Hello => self.until = Instant::now() + NEXT_WORD,
            Said::Own => self.deliver.catch_up(),
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
        let ready = match &*event {
            Dispatch::Ready(ready) => {
                self.resume_url = address::gateway(&ready.ready.resume_gateway_url, self.url);
                *self.guilds = ready.ready.guilds.iter().map(|guild| guild.id.get()).collect();
                true
            }
            Dispatch::GuildCreate(event) => {
                self.guilds.insert(event.guild.id.get());
                false
            }
            // One that is only out of reach is still ours.
            Dispatch::GuildDelete(event) if !event.guild.unavailable => {
                self.guilds.remove(&event.guild.id.get());
                false
            }
            _ => false,
        };
        self.bridge.ops.discord.set_guilds(self.guilds.len() as u64);
        self.deliver.give(Event::Dispatch(event));
        if ready {
            self.opened(false);
        }
    }

    fn opened(&mut self, resumed: bool) {
        tracing::info!(resumed, "connected to Discord");
        self.up = Some(Instant::now());
        self.bridge.ops.discord.set_state(State::Connected);
        self.deliver.give(Event::Connected { resumed });
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
                let why = std::error::Error::source(error).map_or_else(|| error.to_string(), innermost);
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

    fn kept(&self) -> Option<Kept> {
        let session = self.shard.session()?;
        Some(Kept { id: session.id().to_owned(), sequence: session.sequence(), url: self.resume_url.clone() })
    }

    /// Closes the connection with the code that is set, and gives the other side a moment to hear it.
    async fn part(&mut self) {
        let words = async { while let Some(Ok(Message::Text(_))) = self.shard.next().await {} };
        let _ = timeout(LAST_WORD, words).await;
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
