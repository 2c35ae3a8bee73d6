//! The HTTP client of `object_store`: the workspace's reqwest and TLS, with retries of ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chorus_clock::Clock;
use http::StatusCode;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use tokio::time::timeout;

use crate::retry::RetryPolicy;

/// Sends requests, and repeats those that failed in a way that may pass. Each answer is read to its end first, so that one
/// that was cut off is a failed attempt as well.
#[derive(Debug, Clone)]
pub(crate) struct RetryingClient {
    client: reqwest::Client,
    clock: Clock,
    policy: RetryPolicy,
    received: Arc<AtomicU64>,
}

impl RetryingClient {
    /// Makes a client. Blocks, because it reads the system's certificates.
    pub(crate) fn new(clock: Clock, policy: RetryPolicy, is_loopback: bool) -> Result<Self, reqwest::Error> {
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(chorus_tls::client_config())
            .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never());
        if is_loopback {
            builder = builder.no_proxy();
        }
        Ok(Self { client: builder.build()?, clock, policy, received: Arc::default() })
    }

    /// Bytes of the bodies of all answers so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Sends a request once, after so many failures, and reads the whole answer.
    async fn attempt(&self, request: reqwest::Request, failed: u32) -> Result<http::Response<Bytes>, HttpError> {
        let is_head = request.method() == http::Method::HEAD;
        let sent = request.body().and_then(reqwest::Body::as_bytes).map_or(0, |body| body.len() as u64);
        let answer = self.within(failed, sent, self.client.execute(request)).await?;
        let said = answer.headers().get(http::header::CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
        let (parts, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
        let expected = if is_head { 0 } else { said.unwrap_or(0) };
        let body = self.within(failed, expected, body.collect()).await?.to_bytes();
        self.received.fetch_add(body.len() as u64, Ordering::Relaxed);
        if !is_head && said.is_some_and(|said: u64| said != body.len() as u64) {
            let short = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the answer was cut off");
            return Err(HttpError::new(HttpErrorKind::Interrupted, short));
        }
        Ok(http::Response::from_parts(parts, body))
    }

    /// Waits for a part of an attempt that carries so many bytes, after so many failures.
    async fn within<T>(
        &self,
        failed: u32,
        bytes: u64,
        part: impl Future<Output = Result<T, reqwest::Error>>,
    ) -> Result<T, HttpError> {
        let limit = self.policy.timeout_after(failed, bytes);
        match timeout(limit, part).await {
            Ok(done) => done.map_err(http_error),
            Err(_) => {
                let late = format!("no answer within {limit:.1?}");
                Err(HttpError::new(HttpErrorKind::Timeout, std::io::Error::new(std::io::ErrorKind::TimedOut, late)))
            }
        }
    }
}

/// Converts an error. The URL is left out: it is in the request, and a query may have a signature.
fn http_error(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}

/// True if the same request may succeed later.
fn may_pass(status: StatusCode) -> bool {
    let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS];
    let final_errors = [StatusCode::NOT_IMPLEMENTED, StatusCode::HTTP_VERSION_NOT_SUPPORTED];
    (status.is_server_error() && !final_errors.contains(&status)) || passing.contains(&status)
}

fn retry_after(answer: &http::Response<Bytes>) -> Option<Duration> {
    let seconds = answer.headers().get(http::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl HttpService for RetryingClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        // One part is not copied.
        let body = body.collect().await?.to_bytes();
        let url: reqwest::Url =
            parts.uri.to_string().parse().map_err(|e: url::ParseError| HttpError::new(HttpErrorKind::Unknown, e))?;
        let mut failed = 0;
        loop {
            let mut attempt = reqwest::Request::new(parts.method.clone(), url.clone());
            *attempt.headers_mut() = parts.headers.clone();
            *attempt.body_mut() = Some(body.clone().into());
            let answer = self.attempt(attempt, failed).await;
            failed += 1;
            let asked = match &answer {
                Ok(answer) if may_pass(answer.status()) => retry_after(answer),
                Ok(_) => return answer.map(|answer| answer.map(Into::into)),
                Err(_) => None,
            };
            if failed >= self.policy.attempts {
                return answer.map(|answer| answer.map(Into::into));
            }
            let wait = self.policy.wait_after(failed, fastrand::f64(), asked);
            tracing::debug!(method = %parts.method, path = parts.uri.path(), failed, ?wait, "a request is repeated");
            self.clock.sleep_until(self.clock.ticks().after(wait)).await;
        }
    }
}

impl HttpConnector for RetryingClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
