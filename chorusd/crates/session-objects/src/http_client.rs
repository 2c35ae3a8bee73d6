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

    /// Sends a request once, after so many attempts that were late, and reads the whole answer.
    async fn attempt(&self, request: reqwest::Request, late: u32) -> Result<http::Response<Bytes>, HttpError> {
        let is_head = request.method() == http::Method::HEAD;
        let sent = request.body().and_then(reqwest::Body::as_bytes).map_or(0, |body| body.len() as u64);
        let answer = self.within(late, sent, self.client.execute(request)).await?;
        let said = answer.headers().get(http::header::CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
        let (parts, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
        let expected = if is_head { 0 } else { said.unwrap_or(0) };
        let body = self.within(late, expected, body.collect()).await?.to_bytes();
        self.received.fetch_add(body.len() as u64, Ordering::Relaxed);
        if !is_head && said.is_some_and(|said: u64| said != body.len() as u64) {
            let short = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the answer was cut off");
            return Err(HttpError::new(HttpErrorKind::Interrupted, short));
        }
        Ok(http::Response::from_parts(parts, body))
    }

    /// Waits for a part of an attempt that carries so many bytes, after so many attempts that were late.
    async fn within<T>(
        &self,
        late: u32,
        bytes: u64,
        part: impl Future<Output = Result<T, reqwest::Error>>,
    ) -> Result<T, HttpError> {
        let limit = self.policy.timeout_after(late, bytes);
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
        // Only time-outs give the next attempt more time: an error that came at once says nothing about a slow server.
        let (mut failed, mut late) = (0, 0);
        loop {
            let mut attempt = reqwest::Request::new(parts.method.clone(), url.clone());
            *attempt.headers_mut() = parts.headers.clone();
            *attempt.body_mut() = Some(body.clone().into());
            let answer = self.attempt(attempt, late).await;
            failed += 1;
            late += u32::from(matches!(&answer, Err(error) if matches!(error.kind(), HttpErrorKind::Timeout)));
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use object_store::client::HttpRequestBody;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn errors_that_come_at_once_give_a_silent_connection_no_more_time() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        chorus_runtime::spawn(async move {
            let mut open = Vec::new();
            for answer in ["500 Fault", "500 Fault", "500 Fault", "500 Fault", "", "200 OK"] {
                let (mut connection, _) = listener.accept().await.unwrap();
                let _ = connection.read(&mut [0; 4096]).await;
                if answer.is_empty() {
                    open.push(connection);
                } else {
                    let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                    connection.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        let policy = RetryPolicy {
            attempts: 6,
            first_wait: Duration::from_millis(1),
            first_timeout: Duration::from_millis(500),
            ..RetryPolicy::default()
        };
        let client = RetryingClient::new(Clock::system(), policy, true).unwrap();
        let request = http::Request::get(format!("http://127.0.0.1:{port}/")).body(HttpRequestBody::empty()).unwrap();
        let begun = Instant::now();
        let answer = client.call(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}
