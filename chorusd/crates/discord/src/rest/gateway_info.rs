//! The URL of the gateway, and how many sessions may be begun.

use std::time::Duration;

use super::{Request, Route};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{RestClient, RestError};

/// The URL of the gateway, and how many new sessions are allowed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct GatewayInfo {
    pub url: String,
    /// The number of shards that Discord recommends.
    #[serde(default = "one")]
    pub shards: u32,
    #[serde(default)]
    session_start_limit: Option<SessionStartLimit>,
}

#[derive(Debug, Clone, Deserialize)]
struct SessionStartLimit {
    remaining: u64,
    /// Milliseconds.
    reset_after: u64,
    /// Sessions that may be begun at the same time.
    #[serde(default = "one")]
    max_concurrency: u32,
}

fn one() -> u32 {
    1
}

impl GatewayInfo {
    /// Returns how many sessions may be begun at the same time.
    #[must_use]
    pub(crate) fn max_concurrency(&self) -> u32 {
        self.session_start_limit.as_ref().map_or(1, |limit| limit.max_concurrency.max(1))
    }

    /// If no new session is allowed, returns the time until one is.
    #[must_use]
    pub(crate) fn exhausted_for(&self) -> Option<Duration> {
        let left = self.session_start_limit.as_ref().filter(|left| left.remaining == 0)?;
        Some(Duration::from_millis(left.reset_after))
    }
}

impl RestClient {
    /// Requests the URL of the gateway.
    pub(crate) async fn gateway_info(&self) -> Result<GatewayInfo, RestError> {
        self.get(Route::GatewayBot).await
    }

    /// Sends a GET request.
    pub(crate) async fn get<T: DeserializeOwned>(&self, route: Route<'_>) -> Result<T, RestError> {
        self.call(Request::get(route)).await
    }
}
