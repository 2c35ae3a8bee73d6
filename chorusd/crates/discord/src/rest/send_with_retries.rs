//! Sends requests: waits for rate limits, retries, and classifies the responses.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, StatusCode};
use tokio::time::{Instant, sleep};

use super::route_key::RouteKey;
use super::{Request, RestClient, RestError};

/// The user agent, in the form that Discord requires.
const USER_AGENT_NAME: &str = concat!("DiscordBot (chorus, ", env!("CARGO_PKG_VERSION"), ")");
/// No response is longer.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Tries of a request that may be repeated.
const MAX_TRIES: u32 = 3;
const RETRY_INTERVAL: Duration = Duration::from_millis(300);
/// How long requests may go on when the daemon stops.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Time for a request with files, since the uplink may be slow.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// A try that failed.
struct FailedTry {
    error: RestError,
    /// Discord cannot have received the request.
    is_unsent: bool,
}

impl RestClient {
    /// Sends a request, with retries if repeating it is harmless. Waits for rate limits until `latest`, or for as long
    /// as necessary, and gives up shortly after the daemon began to stop.
    pub(super) async fn send(&self, request: Request, latest: Option<Instant>) -> Result<Vec<u8>, RestError> {
        let over = async {
            self.stop.cancelled().await;
            sleep(STOP_GRACE).await;
        };
        tokio::select! {
            biased;
            answer = self.send_with_retries(request, latest) => answer,
            () = over => Err(RestError::Unreachable("the daemon is stopping".into())),
        }
    }

    async fn send_with_retries(&self, request: Request, latest: Option<Instant>) -> Result<Vec<u8>, RestError> {
        let path = RouteKey::of(&request);
        let twice = matches!(request.method, Method::GET | Method::PUT | Method::DELETE);
        let mut tries = 0;
        loop {
            if !path.has_own_token && self.auth_backoff.is_active(Instant::now()) {
                return Err(RestError::Unauthorized);
            }
            let FailedTry { error, is_unsent: unsent } = match self.send_once(&request, &path, latest).await {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            match error {
                // The request was not executed. The limit is recorded now, and the next try waits for it, if there is
                // one.
                RestError::RateLimited { after, .. }
                    if latest.is_none_or(|latest| Instant::now().checked_add(after).is_some_and(|at| at <= latest)) =>
                {
                    sleep(if path.is_exempt {
                        after.max(RETRY_INTERVAL)
                    } else {
                        RETRY_INTERVAL.saturating_sub(after)
                    })
                    .await;
                }
                RestError::ServerError(_) | RestError::Unreachable(_) if (twice || unsent) && tries + 1 < MAX_TRIES => {
                    tries += 1;
                    sleep(RETRY_INTERVAL.mul_f64(f64::from(tries) + fastrand::f64())).await;
                }
                RestError::Unreachable(why) if unsent => return Err(RestError::Unconnected(why)),
                error => return Err(error),
            }
        }
    }

    async fn send_once(
        &self,
        request: &Request,
        path: &RouteKey,
        latest: Option<Instant>,
    ) -> Result<Vec<u8>, FailedTry> {
        let turn = self.rate_limits.acquire(path, latest).await;
        let pass = turn.map_err(|error| FailedTry { error, is_unsent: false })?;
        let built = self.build(request).map_err(|error| FailedTry { error, is_unsent: false })?;
        let lost = |e: reqwest::Error| FailedTry { error: RestError::from_transport(&e), is_unsent: e.is_connect() };
        let mut answer = self.client.execute(built).await.map_err(lost)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY_BYTES {
                let error = RestError::Unreadable("the response is too long".into());
                return Err(FailedTry { error, is_unsent: false });
            }
        }
        match self.response_error(status, &headers, &body, path) {
            None => {
                pass.update(status, &headers, None);
                Ok(body)
            }
            Some(error) => {
                pass.update(status, &headers, Some(&error));
                Err(FailedTry { error, is_unsent: false })
            }
        }
    }

    fn build(&self, request: &Request) -> Result<reqwest::Request, RestError> {
        let mut token = HeaderValue::from_str(self.token.expose())
            .map_err(|_| RestError::Unreachable("the token contains invalid characters".into()))?;
        token.set_sensitive(true);
        let mut builder = request.build(&self.client, &self.api_base)?;
        builder = builder.header(USER_AGENT, USER_AGENT_NAME).header(AUTHORIZATION, token);
        if request.is_upload() {
            builder = builder.timeout(UPLOAD_TIMEOUT);
        }
        builder.build().map_err(|e| RestError::from_transport(&e))
    }

    fn response_error(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        path: &RouteKey,
    ) -> Option<RestError> {
        if status.is_success() {
            if !path.has_own_token {
                self.auth_backoff.reset();
                self.succeeded_with_bot_token.send_replace(());
            }
            self.succeeded.send_replace(());
            return None;
        }
        let error = RestError::from_response(status, headers, body);
        match error {
            // The token of the interaction expired, not the application's.
            RestError::Unauthorized if path.has_own_token => {
                Some(RestError::Gone { code: 0, message: "the interaction expired".into() })
            }
            RestError::Unauthorized => {
                self.auth_backoff.record_refusal(Instant::now());
                Some(error)
            }
            error => Some(error),
        }
    }
}
