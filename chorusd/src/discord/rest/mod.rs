//! Discord's REST API: one file per resource. Routes and bodies are serenity's; sending is here, because its limiter ignores a
//! base address and tells nobody how long it waits.

mod auth_backoff;
mod channels;
mod error;
mod gateway;
mod history;
pub mod interactions;
mod messages;
mod rate_limit;
mod route_key;
mod transport;

use std::time::Duration;

pub use channels::Channel;
pub use error::{RestError, describe_json_error};
pub use messages::{MESSAGE_PAGE_SIZE, MessageContent, PostedMessage};
use reqwest::{Client, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serenity::http::{LightMethod, Request, Route};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::auth_backoff::AuthBackoff;
use self::rate_limit::RateLimits;
use super::urls;
use crate::config::Secret;
use crate::config::discord::DiscordConfig;

/// Until there is a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For one request and its answer, waits for limits apart.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long somebody who is waited for waits for a limit.
const MAX_LIMIT_WAIT: Duration = Duration::from_secs(2);

/// A client of one application. Cheap to share; every request has a deadline.
#[derive(Debug)]
pub struct RestClient {
    client: Client,
    /// With `Bot ` before it.
    token: Secret,
    api_base: String,
    rate_limits: RateLimits,
    /// Discord said that the token is none: it is not asked again so soon.
    auth_backoff: AuthBackoff,
    stop: CancellationToken,
}

/// The same for whoever has time: it waits for limits however long that is. Requests of other buckets are not held up.
#[derive(Debug, Clone, Copy)]
pub struct BackgroundClient<'r>(&'r RestClient);

impl RestClient {
    /// A client with this token at the address of the configuration, which waits for nothing long after `stop`. Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &DiscordConfig, token: &Secret, stop: CancellationToken) -> Result<Self, RestError> {
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .retry(reqwest::retry::never());
        if urls::is_loopback(&config.api_base) {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build().map_err(|e| RestError::from_transport(&e))?,
            token: Secret::new(format!("Bot {}", token.expose())),
            api_base: config.api_base.clone(),
            rate_limits: RateLimits::default(),
            auth_backoff: AuthBackoff::default(),
            stop,
        })
    }

    /// Sends a request and reads its answer. Waits for limits for two seconds at most.
    ///
    /// # Errors
    /// What Discord says, or that it cannot be reached.
    pub async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, RestError> {
        parse_body(&self.send(request, Some(Instant::now() + MAX_LIMIT_WAIT)).await?)
    }

    /// Sends a request whose answer says nothing. Waits as [`Rest::call`] does.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn execute(&self, request: Request<'_>) -> Result<(), RestError> {
        self.send(request, Some(Instant::now() + MAX_LIMIT_WAIT)).await.map(drop)
    }

    /// For what nobody waits for.
    #[must_use]
    pub fn background(&self) -> BackgroundClient<'_> {
        BackgroundClient(self)
    }
}

impl BackgroundClient<'_> {
    /// As [`Rest::call`], whatever limit there is.
    ///
    /// # Errors
    /// As [`Rest::call`], but for limits.
    pub async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, RestError> {
        parse_body(&self.0.send(request, None).await?)
    }

    /// As [`Rest::tell`], whatever limit there is.
    ///
    /// # Errors
    /// As [`Waiting::call`].
    pub async fn execute(&self, request: Request<'_>) -> Result<(), RestError> {
        self.0.send(request, None).await.map(drop)
    }
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, RestError> {
    serde_json::from_slice(body).map_err(|e| RestError::Unreadable(describe_json_error(&e)))
}

/// A request with a JSON body.
///
/// # Errors
/// `Unreadable`, where the body is none that JSON knows.
pub fn json_request<'r>(
    method: LightMethod,
    route: Route<'r>,
    body: &impl Serialize,
) -> Result<Request<'r>, RestError> {
    let body = serde_json::to_vec(body).map_err(|e| RestError::Unreadable(describe_json_error(&e)))?;
    Ok(Request::new(route, method).body(Some(body)))
}
