//! Discord's REST API, one file per resource. Models are those of serenity. Requests are built and sent here: serenity's
//! client needs another HTTP library, and its rate limiter ignores a base URL and does not report how long it waits.

mod auth_backoff;
mod channels;
mod error;
mod gateway_info;
mod history;
pub(crate) mod interactions;
mod messages;
mod rate_limit;
mod request;
mod route_key;
mod send_with_retries;

use std::time::Duration;

use chorus_base::Secret;
use chorus_config::discord::DiscordConfig;
use reqwest::{Client, redirect};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::auth_backoff::AuthBackoff;
use self::rate_limit::RateLimits;
use super::url_checks;
pub(crate) use channels::Channel;
pub(crate) use error::{RestError, describe_json_error};
pub(crate) use messages::{MESSAGE_PAGE_SIZE, MessageContent, PostedMessage};
pub(crate) use request::{Request, Route};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one request and its response, without waits for rate limits.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a request that somebody waits for may wait for a rate limit.
const MAX_LIMIT_WAIT: Duration = Duration::from_secs(2);

/// The REST client of one application. Every request has a deadline.
#[derive(Debug)]
pub(crate) struct RestClient {
    client: Client,
    /// Prefixed with `Bot `.
    token: Secret,
    api_base: String,
    rate_limits: RateLimits,
    /// After Discord refused the token, requests are held back for a while.
    auth_backoff: AuthBackoff,
    /// Change at each request that succeeds, and at each of those with the bot's token.
    succeeded: watch::Sender<()>,
    succeeded_with_bot_token: watch::Sender<()>,
    stop: CancellationToken,
}

/// Receivers that change when requests succeed.
#[derive(Debug, Clone)]
pub(crate) struct Successes {
    pub any: watch::Receiver<()>,
    /// Without answers to interactions, which have tokens of their own.
    pub with_bot_token: watch::Receiver<()>,
}

/// A view of the client for background work: its requests wait for rate limits for as long as necessary. Requests in
/// other buckets are not delayed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackgroundClient<'r>(&'r RestClient);

impl RestClient {
    /// Creates a client for the configured API. Requests are given up shortly after `stop`. Blocks, because the
    /// machine's certificates are read.
    pub(crate) fn new(config: &DiscordConfig, token: &Secret, stop: CancellationToken) -> Result<Self, RestError> {
        let mut client = Client::builder()
            .tls_backend_preconfigured(chorus_tls::client_config())
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .retry(reqwest::retry::never());
        if url_checks::is_loopback(&config.api_base) {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build().map_err(|e| RestError::from_transport(&e))?,
            token: Secret::new(format!("Bot {}", token.expose())),
            api_base: config.api_base.clone(),
            rate_limits: RateLimits::default(),
            auth_backoff: AuthBackoff::default(),
            succeeded: watch::Sender::default(),
            succeeded_with_bot_token: watch::Sender::default(),
            stop,
        })
    }

    /// Sends a request and parses the response. Waits for rate limits for two seconds at most.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, RestError> {
        parse_body(&self.send(request, Some(Instant::now() + MAX_LIMIT_WAIT)).await?)
    }

    /// Sends a request whose response has no content. Waits like [`RestClient::call`].
    pub(crate) async fn execute(&self, request: Request) -> Result<(), RestError> {
        self.send(request, Some(Instant::now() + MAX_LIMIT_WAIT)).await.map(drop)
    }

    /// Returns receivers that change at each request that succeeds.
    pub(crate) fn successes(&self) -> Successes {
        Successes { any: self.succeeded.subscribe(), with_bot_token: self.succeeded_with_bot_token.subscribe() }
    }

    /// Returns a view for requests that nobody waits for.
    #[must_use]
    pub(crate) fn background(&self) -> BackgroundClient<'_> {
        BackgroundClient(self)
    }
}

impl BackgroundClient<'_> {
    /// Like [`RestClient::call`], but waits for any rate limit.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, RestError> {
        parse_body(&self.0.send(request, None).await?)
    }

    /// Like [`RestClient::execute`], but waits for any rate limit.
    pub(crate) async fn execute(&self, request: Request) -> Result<(), RestError> {
        self.0.send(request, None).await.map(drop)
    }
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, RestError> {
    serde_json::from_slice(body).map_err(|e| RestError::Unreadable(describe_json_error(&e)))
}
