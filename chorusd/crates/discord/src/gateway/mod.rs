//! The connection to Discord's gateway. It is kept up for as long as the daemon runs, within the limits of Discord.

mod backoff;
mod close_codes;
mod connection;
mod event_parse;
mod event_sender;
mod identify_queue;
mod initial_events;
mod session_store;
mod shard_count;
mod tunnel;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Secret;
use chorus_engine::ops::discord::gateway_session::GatewaySession;
use chorus_engine::ops::discord::{ConnectionState, identify_budget};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use twilight_gateway::{Config, ConfigBuilder, Intents};

use self::backoff::{ConnectCost, ReconnectBackoff};
use self::close_codes::{INVALID_TOKEN, PermanentClose};
use self::connection::{ConnectOptions, ConnectionEnd, GatewayState, run_connection};
use self::event_sender::EventSender;
use self::identify_queue::IdentifyDenied;
pub(crate) use self::identify_queue::IdentifyTurns;
use self::session_store::GatewaySessionStore;
pub(crate) use self::shard_count::prepare_shards;
use super::app::DiscordApp;
use super::gateway_event::GatewayEvent;
use super::rest::RestError;
use super::url_checks;

/// The requested events: guilds with their channels and roles, messages in them, and the content of these.
const INTENTS: Intents =
    Intents::GUILDS.union(Intents::GUILD_MESSAGES).union(Intents::MESSAGE_CONTENT).union(Intents::DIRECT_MESSAGES);
/// The gateway session is given up after this many failed tries to resume it.
const MAX_FAILED_RESUMES: u32 = 3;
/// Shorter waits are not reported in the state.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(5);
const IDENTIFIES_EXHAUSTED: &str = "too many connections to Discord today";
/// A wait until a time of day checks the clock this often, because the clock may be set.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Keeps a shard connected until the daemon stops, this node has it no more, or Discord refuses it permanently.
/// Returns true if it is refused.
pub(crate) async fn run(app: &Arc<DiscordApp>, shard: u32, events: mpsc::Sender<GatewayEvent>) -> bool {
    let base = match base_config(&app.token).await {
        Ok(base) => base,
        Err(why) => {
            let hint = "install the system's CA certificates, then run `chorusctl daemon restart`".to_owned();
            app.ops.discord.set_shard_state(shard, ConnectionState::Stopped { why, hint });
            return true;
        }
    };
    let backoff = ReconnectBackoff::new(app.ops.config.discord.reconnect_max);
    let keeper = GatewaySessionStore::new(app, shard);
    let kept = keeper.load().await;
    let ears = GatewayState { shard, events: EventSender::new(events), guilds: HashSet::new(), session_store: keeper };
    Gateway {
        app,
        shard,
        stop: app.shards.term(shard),
        base_config: base,
        state: ears,
        backoff,
        is_inherited: kept.is_some(),
        session: kept,
        failed_resumes: 0,
        gateway_url: None,
    }
    .run()
    .await
}

/// Builds the configuration that all connections share, so that the machine's certificates are read once. The library
/// panics if they cannot be read; the error says so.
async fn base_config(token: &Secret) -> Result<Config<()>, String> {
    let token = token.expose().to_owned();
    chorus_tls::install_provider();
    let made = chorus_runtime::spawn_blocking(move || ConfigBuilder::new(token, INTENTS).queue(()).build());
    made.await.map_err(|_| "no CA certificates found on this system".to_owned())
}

struct Gateway<'g> {
    app: &'g Arc<DiscordApp>,
    shard: u32,
    stop: CancellationToken,
    base_config: Config<()>,
    state: GatewayState,
    backoff: ReconnectBackoff,
    /// The session, while it can be resumed.
    session: Option<GatewaySession>,
    /// The session was begun by the previous daemon, so this one has not received its first events.
    is_inherited: bool,
    /// Failed tries to resume the session.
    failed_resumes: u32,
    /// The last known URL of the gateway.
    gateway_url: Option<String>,
}

impl Gateway<'_> {
    async fn run(mut self) -> bool {
        loop {
            self.set_state(ConnectionState::Connecting);
            let (pause, why) = match self.run_once().await {
                ConnectionEnd::Stopped => break,
                ConnectionEnd::Permanent(PermanentClose { why, hint }) => {
                    tracing::error!(why, hint, "Discord is off");
                    self.set_state(ConnectionState::Stopped { why: why.into(), hint: hint.into() });
                    return true;
                }
                ConnectionEnd::IdentifyDenied(IdentifyDenied::Until(at)) => {
                    (Pause::Until(at), IDENTIFIES_EXHAUSTED.to_owned())
                }
                ConnectionEnd::IdentifyDenied(IdentifyDenied::BudgetUnavailable(failure)) => {
                    (self.backoff_pause(None, true), failure.message)
                }
                ConnectionEnd::RateLimited(wait) => (Pause::For(wait), "Discord's rate limit was reached".to_owned()),
                ConnectionEnd::Lost { why, stayed, reached } => (self.backoff_pause(stayed, reached), why),
            };
            tokio::select! {
                () = self.wait_before_retry(pause, why) => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.set_state(ConnectionState::Off);
        self.state.session_store.store_final(self.session.as_ref()).await;
        false
    }

    fn set_state(&self, state: ConnectionState) {
        self.app.ops.discord.set_shard_state(self.shard, state);
    }

    /// Runs one connection, from resolving the gateway's URL to its end.
    async fn run_once(&mut self) -> ConnectionEnd {
        let stop = self.stop.clone();
        let found = tokio::select! {
            found = self.resolve_url() => found,
            () = stop.cancelled() => return ConnectionEnd::Stopped,
        };
        let url = match found {
            Ok(url) => url,
            Err(end) => return end,
        };
        let kept = self.session.take();
        let way = ConnectOptions {
            base: &self.base_config,
            url: &url,
            session: kept.as_ref(),
            is_inherited: self.is_inherited,
        };
        let (end, now_kept) = run_connection(self.app, &mut self.state, way).await;
        self.is_inherited &= now_kept.is_some() && !matches!(end, ConnectionEnd::Lost { stayed: Some(_), .. });
        if !matches!(end, ConnectionEnd::Stopped) {
            self.state.session_store.store(now_kept.as_ref());
        }
        self.session = now_kept;
        match &end {
            // The session's own URL may be gone, while the gateway itself can be reached.
            ConnectionEnd::Lost { reached: false, .. } => {
                self.gateway_url = None;
                if let Some(kept) = &mut self.session {
                    kept.url = None;
                }
            }
            ConnectionEnd::Lost { stayed: None, .. } if kept.is_some() => {
                self.failed_resumes += 1;
                if self.failed_resumes >= MAX_FAILED_RESUMES {
                    self.session = None;
                }
            }
            _ => self.failed_resumes = 0,
        }
        end
    }

    /// Returns the URL to connect to. Before a new session it checks that the budget of gateway sessions allows one.
    async fn resolve_url(&mut self) -> Result<String, ConnectionEnd> {
        if self.is_inherited
            && let Some(kept) = &self.session
        {
            match initial_events::fetch(&self.app.rest, kept, (self.shard, self.app.shards.count())).await {
                Ok(told) => told.into_iter().for_each(|event| self.state.dispatch(&self.app.ops, event)),
                Err(RestError::Unauthorized) => return Err(ConnectionEnd::Permanent(INVALID_TOKEN)),
                Err(e) if e.is_transient() => return Err(connection_lost(e.to_string())),
                Err(error) => {
                    tracing::info!(%error, "starting a new session");
                    (self.session, self.is_inherited) = (None, false);
                }
            }
        }
        let configured = self.app.ops.config.discord.gateway_url.clone();
        if let Some(kept) = &self.session {
            let known = kept.url.clone().or_else(|| configured.clone()).or_else(|| self.gateway_url.clone());
            if let Some(url) = known {
                return Ok(url);
            }
        } else {
            let budget = identify_budget::read_budget(&self.app.ops).await;
            if let Some(at) = budget
                .map_err(|failure| ConnectionEnd::IdentifyDenied(IdentifyDenied::BudgetUnavailable(failure)))?
                .next_at
            {
                return Err(ConnectionEnd::IdentifyDenied(IdentifyDenied::Until(at)));
            }
        }
        let starts = match self.app.rest.gateway_info().await {
            Ok(starts) => starts,
            Err(RestError::Unauthorized) => return Err(ConnectionEnd::Permanent(INVALID_TOKEN)),
            // A server that has a gateway but no REST API.
            Err(RestError::Refused { status: 404, .. }) if configured.is_some() => {
                return Ok(configured.unwrap_or_default());
            }
            Err(RestError::RateLimited { after, .. }) => return Err(ConnectionEnd::RateLimited(after)),
            Err(e) => return Err(connection_lost(e.to_string())),
        };
        self.app.shards.identify_turns.set_concurrency(starts.max_concurrency());
        if let Some(wait) = starts.exhausted_for().filter(|_| self.session.is_none()) {
            return Err(ConnectionEnd::IdentifyDenied(IdentifyDenied::Until(self.time_after(wait))));
        }
        let base = &self.app.ops.config.discord.api_base;
        let url = configured.or_else(|| url_checks::normalize_gateway_url(&starts.url, base));
        self.gateway_url =
            Some(url.ok_or_else(|| connection_lost("Discord returned an invalid gateway address".to_owned()))?);
        Ok(self.gateway_url.clone().unwrap_or_default())
    }

    /// Returns the pause before the next try. `reached`: Discord was reached, so the next try may begin a new session.
    fn backoff_pause(&mut self, stayed: Option<Duration>, reached: bool) -> Pause {
        let next = if reached && self.session.is_none() { ConnectCost::Counted } else { ConnectCost::Free };
        Pause::For(self.backoff.next_wait(stayed, next, fastrand::f64()))
    }

    /// Waits before the next try, and reports the wait in the state if it is long.
    async fn wait_before_retry(&self, pause: Pause, why: String) {
        let ops = &self.app.ops;
        let (until, long) = match pause {
            Pause::For(wait) => (self.time_after(wait), wait >= MIN_REPORTED_WAIT),
            Pause::Until(at) => (at, true),
        };
        tracing::warn!(why, %until, "not connected to Discord");
        self.set_state(if long { ConnectionState::Waiting { until, why } } else { ConnectionState::Connecting });
        match pause {
            Pause::For(wait) => sleep(wait).await,
            Pause::Until(at) => {
                while let Ok(left) = Duration::try_from(at.duration_since(ops.clock.now()))
                    && !left.is_zero()
                {
                    ops.clock.sleep_until(ops.clock.ticks().after(left.min(CLOCK_CHECK_INTERVAL))).await;
                }
            }
        }
        self.set_state(ConnectionState::Connecting);
    }

    /// Returns the time of day after `wait`.
    fn time_after(&self, wait: Duration) -> Timestamp {
        let now = self.app.ops.clock.now();
        now.checked_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
    }
}

/// A pause before the next try.
enum Pause {
    For(Duration),
    Until(Timestamp),
}

fn connection_lost(why: String) -> ConnectionEnd {
    ConnectionEnd::Lost { why, stayed: None, reached: false }
}
