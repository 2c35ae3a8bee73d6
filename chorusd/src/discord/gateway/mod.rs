//! The connection to Discord's gateway: kept for as long as the daemon runs, within what Discord allows.

mod backoff;
mod closed;
mod connection;
mod deliver;
mod identify;
mod keeper;
mod read;
mod snapshot;
mod tunnel;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::sleep;
use twilight_gateway::{Config, ConfigBuilder, Intents};

use self::backoff::{Backoff, Next};
use self::closed::{ForGood, NO_TOKEN};
use self::connection::{Ears, End, Way, hold};
use self::deliver::Deliver;
use self::identify::Refused;
use self::keeper::Keeper;
use super::bridge::Bridge;
use super::event::Event;
use super::rest::RestError;
use super::{address, chance};
use crate::ops::discord::session::Session;
use crate::ops::discord::{State, identifies};

/// What is wanted: servers with their channels and roles, messages in them, and what these say.
const INTENTS: Intents = Intents::GUILDS.union(Intents::GUILD_MESSAGES).union(Intents::MESSAGE_CONTENT);
/// A session that could not be taken up this often is given up.
const RESUMES: u32 = 3;
/// Shorter waits are nothing to tell.
const WORTH_TELLING: Duration = Duration::from_secs(5);
const TOO_OFTEN: &str = "Discord was connected to too often today";
/// Waits for a time of day look at the clock this often: it may be set.
const LOOK: Duration = Duration::from_secs(60);

/// Keeps the connection until the daemon stops or Discord wants it no more.
pub async fn run(bridge: &Arc<Bridge>, events: mpsc::Sender<Event>) {
    let base = match base(bridge).await {
        Ok(base) => base,
        Err(why) => {
            let hint = "install the certificates of this system, then `chorusctl daemon restart`".to_owned();
            return bridge.ops.discord.set_state(State::Stopped { why, hint });
        }
    };
    let backoff = Backoff::new(bridge.ops.config.discord.reconnect_max);
    let keeper = Keeper::new(bridge);
    let kept = keeper.found().await;
    let ears = Ears { deliver: Deliver::new(events), guilds: HashSet::new(), keeper };
    Gateway { bridge, base, ears, backoff, again: kept.is_some(), kept, resumes: 0, url: None }.run().await;
}

/// What all connections have in common: the machine's certificates are read once. Its library panics where they cannot be.
async fn base(bridge: &Bridge) -> Result<Config<()>, String> {
    let token = bridge.token.expose().to_owned();
    let made = tokio::task::spawn_blocking(move || ConfigBuilder::new(token, INTENTS).queue(()).build());
    made.await.map_err(|_| "TLS cannot be used".to_owned())
}

struct Gateway<'g> {
    bridge: &'g Arc<Bridge>,
    base: Config<()>,
    ears: Ears,
    backoff: Backoff,
    /// The session, while it can be taken up.
    kept: Option<Session>,
    /// It is the one of the daemon before: nobody here has heard how it began.
    again: bool,
    /// How often that was tried in vain.
    resumes: u32,
    /// Where the gateway was.
    url: Option<String>,
}

impl Gateway<'_> {
    async fn run(mut self) {
        loop {
            let discord = &self.bridge.ops.discord;
            discord.set_state(State::Connecting);
            let (pause, why) = match self.once().await {
                End::Asked => break,
                End::ForGood(ForGood { why, hint }) => {
                    tracing::error!(why, hint, "Discord is off");
                    self.bridge.ops.discord.set_state(State::Stopped { why: why.into(), hint: hint.into() });
                    return;
                }
                End::Refused(Refused::Until(at)) => (Pause::Until(at), TOO_OFTEN.to_owned()),
                End::Refused(Refused::Uncounted(failure)) => (self.pause(None, true), failure.message),
                End::Limited(wait) => (Pause::For(wait), "Discord wants fewer requests".to_owned()),
                End::Lost { why, stayed, reached } => (self.pause(stayed, reached), why),
            };
            tokio::select! {
                () = self.wait(pause, why) => {}
                () = self.bridge.stop.cancelled() => break,
            }
        }
        self.bridge.ops.discord.set_state(State::Off);
        self.ears.keeper.close(self.kept.as_ref()).await;
    }

    /// One connection, from looking for the gateway to its end.
    async fn once(&mut self) -> End {
        let stop = self.bridge.stop.clone();
        let found = tokio::select! {
            found = self.find() => found,
            () = stop.cancelled() => return End::Asked,
        };
        let url = match found {
            Ok(url) => url,
            Err(end) => return end,
        };
        let kept = self.kept.take();
        let way = Way { base: &self.base, url: &url, kept: kept.as_ref(), again: self.again };
        let (end, now_kept) = hold(self.bridge, &mut self.ears, way).await;
        self.again &= now_kept.is_some() && !matches!(end, End::Lost { stayed: Some(_), .. });
        if !matches!(end, End::Asked) {
            self.ears.keeper.keep(now_kept.as_ref());
        }
        self.kept = now_kept;
        match &end {
            // Where the session was may be gone, and the gateway itself not.
            End::Lost { reached: false, .. } => {
                self.url = None;
                if let Some(kept) = &mut self.kept {
                    kept.url = None;
                }
            }
            End::Lost { stayed: None, .. } if kept.is_some() => {
                self.resumes += 1;
                if self.resumes >= RESUMES {
                    self.kept = None;
                }
            }
            _ => self.resumes = 0,
        }
        end
    }

    /// Where to connect. A new session costs: whether there may be one is asked first.
    async fn find(&mut self) -> Result<String, End> {
        if self.again
            && let Some(kept) = &self.kept
        {
            match snapshot::snapshot(&self.bridge.rest, kept).await {
                Ok(told) => told.into_iter().for_each(|event| self.ears.hear(self.bridge, event)),
                Err(RestError::Unauthorized) => return Err(End::ForGood(NO_TOKEN)),
                Err(e) if e.may_pass() => return Err(lost(e.to_string())),
                Err(error) => {
                    tracing::info!(%error, "a new session is begun");
                    (self.kept, self.again) = (None, false);
                }
            }
        }
        let configured = self.bridge.ops.config.discord.gateway_url.clone();
        if let Some(kept) = &self.kept {
            let known = kept.url.clone().or_else(|| configured.clone()).or_else(|| self.url.clone());
            if let Some(url) = known {
                return Ok(url);
            }
        } else {
            let budget = identifies::budget(&self.bridge.ops).await;
            if let Some(at) = budget.map_err(|failure| End::Refused(Refused::Uncounted(failure)))?.again {
                return Err(End::Refused(Refused::Until(at)));
            }
        }
        let starts = match self.bridge.rest.gateway().await {
            Ok(starts) => starts,
            Err(RestError::Unauthorized) => return Err(End::ForGood(NO_TOKEN)),
            // A server that only has a gateway.
            Err(RestError::Refused { status: 404, .. }) if configured.is_some() => {
                return Ok(configured.unwrap_or_default());
            }
            Err(RestError::Limited { after, .. }) => return Err(End::Limited(after)),
            Err(e) => return Err(lost(e.to_string())),
        };
        if let Some(wait) = starts.none_for().filter(|_| self.kept.is_none()) {
            return Err(End::Refused(Refused::Until(self.at(wait))));
        }
        let base = &self.bridge.ops.config.discord.api_base;
        let url = configured.or_else(|| address::gateway(&starts.url, base));
        self.url = Some(url.ok_or_else(|| lost("Discord names no gateway that can be connected to".to_owned()))?);
        Ok(self.url.clone().unwrap_or_default())
    }

    /// `reached`: Discord was there, so that the next try may come to a new session.
    fn pause(&mut self, stayed: Option<Duration>, reached: bool) -> Pause {
        let next = if reached && self.kept.is_none() { Next::Counted } else { Next::Free };
        Pause::For(self.backoff.after(stayed, next, chance()))
    }

    /// Waits, and says so where that is long.
    async fn wait(&self, pause: Pause, why: String) {
        let ops = &self.bridge.ops;
        let (until, long) = match pause {
            Pause::For(wait) => (self.at(wait), wait >= WORTH_TELLING),
            Pause::Until(at) => (at, true),
        };
        tracing::warn!(why, %until, "not connected to Discord");
        ops.discord.set_state(if long { State::Waiting { until, why } } else { State::Connecting });
        match pause {
            Pause::For(wait) => sleep(wait).await,
            Pause::Until(at) => {
                while let Ok(left) = Duration::try_from(at.duration_since(ops.clock.now()))
                    && !left.is_zero()
                {
                    ops.clock.sleep_until(ops.clock.ticks().after(left.min(LOOK))).await;
                }
            }
        }
        ops.discord.set_state(State::Connecting);
    }

    /// The time of day after `wait`.
    fn at(&self, wait: Duration) -> Timestamp {
        let now = self.bridge.ops.clock.now();
        now.checked_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
    }
}

/// How long until the next try.
enum Pause {
    For(Duration),
    Until(Timestamp),
}

fn lost(why: String) -> End {
    End::Lost { why, stayed: None, reached: false }
}
