//! Discord's REST API: one file per resource. Routes and bodies are serenity's; sending is here, because its limiter ignores a
//! base address and tells nobody how long it waits.

mod error;
mod messages;

use std::time::Duration;

pub use error::RestError;
pub use messages::{Found, Looks, PAGE};
use reqwest::{Client, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serenity::http::{LightMethod, Request, Route};

use crate::config::Secret;
use crate::config::discord::Discord;

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// For one request and its answer, waits for limits apart.
const WHOLE: Duration = Duration::from_secs(15);

/// A client of one application. Cheap to share; every request has a deadline.
#[derive(Debug)]
pub struct Rest {
    client: Client,
    /// With `Bot ` before it.
    token: Secret,
    base: String,
}

impl Rest {
    /// A client with this token at the address of the configuration. Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &Discord, token: &Secret) -> Result<Self, RestError> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .retry(reqwest::retry::never())
            .build()
            .map_err(|e| RestError::Unreachable(e.to_string()))?;
        Ok(Self { client, token: Secret::new(format!("Bot {}", token.expose())), base: config.api_base.clone() })
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// What Discord says, or that it cannot be reached.
    pub async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, RestError> {
        let body = self.send(request).await?;
        serde_json::from_slice(&body).map_err(|e| RestError::Unreadable(e.to_string()))
    }

    /// Sends a request whose answer says nothing.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn tell(&self, request: Request<'_>) -> Result<(), RestError> {
        self.send(request).await.map(drop)
    }

    async fn send(&self, request: Request<'_>) -> Result<Vec<u8>, RestError> {
        let built = request
            .build(&self.client, self.token.expose(), Some(&self.base))
            .map_err(|e| RestError::Unreachable(e.to_string()))?;
        let answer = built.send().await.map_err(|e| RestError::unreachable(&e))?;
        let (status, limits) = (answer.status(), answer.headers().clone());
        let body = answer.bytes().await.map_err(|e| RestError::unreachable(&e))?;
        if status.is_success() { Ok(body.into()) } else { Err(RestError::refused(status, &limits, &body)) }
    }
}

/// A request with a JSON body.
///
/// # Errors
/// `Unreadable`, where the body is none that JSON knows.
pub fn json<'r>(method: LightMethod, route: Route<'r>, body: &impl Serialize) -> Result<Request<'r>, RestError> {
    let body = serde_json::to_vec(body).map_err(|e| RestError::Unreadable(e.to_string()))?;
    Ok(Request::new(route, method).body(Some(body)))
}
