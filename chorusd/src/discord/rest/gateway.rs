//! Where the gateway is.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serenity::http::{LightMethod, Request, Route};

use super::{RestClient, RestError};

/// Where the gateway is, and how many new connections to it there may be.
#[derive(Debug, Clone, Deserialize)]
pub struct GatewayInfo {
    pub url: String,
    #[serde(default)]
    session_start_limit: Option<SessionStartLimit>,
}

#[derive(Debug, Clone, Deserialize)]
struct SessionStartLimit {
    remaining: u64,
    /// Milliseconds.
    reset_after: u64,
}

impl GatewayInfo {
    /// Discord takes no new connection before this has passed.
    #[must_use]
    pub fn exhausted_for(&self) -> Option<Duration> {
        let left = self.session_start_limit.as_ref().filter(|left| left.remaining == 0)?;
        Some(Duration::from_millis(left.reset_after))
    }
}

impl RestClient {
    /// Asks where the gateway is.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn gateway_info(&self) -> Result<GatewayInfo, RestError> {
        self.get(Route::GatewayBot).await
    }

    /// Asks for something.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn get<T: DeserializeOwned>(&self, route: Route<'_>) -> Result<T, RestError> {
        self.call(Request::new(route, LightMethod::Get)).await
    }
}
