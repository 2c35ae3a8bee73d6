//! Discord's REST API: one file per resource. Routes and bodies are serenity's; sending is here, because its limiter ignores a
//! base address and tells nobody how long it waits.

mod channels;
mod error;
mod gateway;
mod history;
pub mod interactions;
mod limits;
mod messages;
mod path;
mod refused;
mod send;

use std::time::Duration;

pub use channels::Channel;
pub use error::{RestError, told};
pub use messages::{Found, Looks, PAGE};
use reqwest::{Client, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serenity::http::{LightMethod, Request, Route};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::limits::Limits;
use self::refused::Refused;
use super::address;
use crate::config::Secret;
use crate::config::discord::Discord;

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// For one request and its answer, waits for limits apart.
const WHOLE: Duration = Duration::from_secs(15);
/// How long somebody who is waited for waits for a limit.
const SHORT: Duration = Duration::from_secs(2);

/// A client of one application. Cheap to share; every request has a deadline.
#[derive(Debug)]
pub struct Rest {
    client: Client,
    /// With `Bot ` before it.
    token: Secret,
    base: String,
    limits: Limits,
    /// Discord said that the token is none: it is not asked again so soon.
    refused: Refused,
    stop: CancellationToken,
}

/// The same for whoever has time: it waits for limits however long that is. Requests of other buckets are not held up.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'r>(&'r Rest);

impl Rest {
    /// A client with this token at the address of the configuration, which waits for nothing long after `stop`. Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &Discord, token: &Secret, stop: CancellationToken) -> Result<Self, RestError> {
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .retry(reqwest::retry::never());
        if address::is_here(&config.api_base) {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build().map_err(|e| RestError::unreachable(&e))?,
            token: Secret::new(format!("Bot {}", token.expose())),
            base: config.api_base.clone(),
            limits: Limits::default(),
            refused: Refused::default(),
            stop,
        })
    }

    /// Sends a request and reads its answer. Waits for limits for two seconds at most.
    ///
    /// # Errors
    /// What Discord says, or that it cannot be reached.
    pub async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, RestError> {
        read(&self.send(request, Some(Instant::now() + SHORT)).await?)
    }

    /// Sends a request whose answer says nothing. Waits as [`Rest::call`] does.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn tell(&self, request: Request<'_>) -> Result<(), RestError> {
        self.send(request, Some(Instant::now() + SHORT)).await.map(drop)
    }

    /// For what nobody waits for.
    #[must_use]
    pub fn waiting(&self) -> Waiting<'_> {
        Waiting(self)
    }
}

impl Waiting<'_> {
    /// As [`Rest::call`], whatever limit there is.
    ///
    /// # Errors
    /// As [`Rest::call`], but for limits.
    pub async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, RestError> {
        read(&self.0.send(request, None).await?)
    }

    /// As [`Rest::tell`], whatever limit there is.
    ///
    /// # Errors
    /// As [`Waiting::call`].
    pub async fn tell(&self, request: Request<'_>) -> Result<(), RestError> {
        self.0.send(request, None).await.map(drop)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, RestError> {
    serde_json::from_slice(body).map_err(|e| RestError::Unreadable(told(&e)))
}

/// A request with a JSON body.
///
/// # Errors
/// `Unreadable`, where the body is none that JSON knows.
pub fn json<'r>(method: LightMethod, route: Route<'r>, body: &impl Serialize) -> Result<Request<'r>, RestError> {
    let body = serde_json::to_vec(body).map_err(|e| RestError::Unreadable(told(&e)))?;
    Ok(Request::new(route, method).body(Some(body)))
}
