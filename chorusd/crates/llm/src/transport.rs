//! Sends HTTP requests and receives responses within time limits, independent of the provider.
//!
//! Redirects are not followed, so that a key is sent only to the configured server. The proxies of the environment
//! (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`) are used, but never for a server on this machine.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use chorus_config::{CallLimits, Provider, is_loopback_url};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use tokio::time::{Instant, timeout_at};

use super::error::{CallError, ErrorClass};

/// Limit of the bytes that are read of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// How long the end of a complete response is awaited, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// An HTTP request.
#[derive(Debug, Default)]
pub struct HttpRequest {
    /// Appended to the provider's base URL; begins with a slash.
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON to post; `None` makes a GET request.
    pub body: Option<Vec<u8>>,
}

/// Connections to one provider.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    client: Client,
    name: String,
    base_url: String,
}

/// Properties of a client (connect timeout, local server). One client is made for each, because making one reads the
/// system's certificates.
pub(crate) type ClientKind = (Duration, bool);

/// Returns the kind of client that `provider` needs.
pub(crate) fn client_kind(provider: &Provider) -> ClientKind {
    (provider.limits.connect, is_loopback_url(&provider.base_url))
}

/// Makes a client. Blocks, because it reads the system's certificates.
pub(crate) fn build_client((connect, here): ClientKind) -> Result<Client, CallError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(chorus_tls::client_config())
        .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(connect)
        .retry(reqwest::retry::never());
    if here {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|e| CallError::new(ErrorClass::Network, format!("cannot use TLS: {}", root_cause(&e))))
}

impl Transport {
    pub(crate) fn new(client: Client, provider: &Provider) -> Self {
        Self { client, name: provider.name.clone(), base_url: provider.base_url.clone() }
    }

    /// Sends `ask` and waits for the head of the response.
    pub(crate) async fn send(&self, ask: HttpRequest, watch: &AttemptDeadline) -> Result<HttpResponse, CallError> {
        let url = format!("{}{}", self.base_url, ask.path);
        let mut request = match ask.body {
            Some(body) => self.client.post(url).header(CONTENT_TYPE, "application/json").body(body),
            None => self.client.get(url),
        };
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        match watch.run(&self.name, request.send()).await? {
            Ok(response) => Ok(HttpResponse {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                name: self.name.clone(),
                response,
            }),
            Err(e) => Err(self.send_error(&e, watch)),
        }
    }

    fn send_error(&self, error: &reqwest::Error, watch: &AttemptDeadline) -> CallError {
        let failed = self.connection_error(error, watch);
        // A server that closes the connection before it responds may have read the request.
        if error.is_connect() || error.is_builder() { failed } else { failed.mark_accepted() }
    }

    fn connection_error(&self, error: &reqwest::Error, watch: &AttemptDeadline) -> CallError {
        let Self { name, base_url, .. } = self;
        if error.is_connect() && error.is_timeout() {
            let limit = humantime::format_duration(watch.limits.connect);
            return CallError::new(ErrorClass::Network, format!("no connection to {name} ({base_url}) within {limit}"))
                .hint("check the network and `base_url`, or raise `connect_timeout`");
        }
        let hint = if is_loopback_url(base_url) {
            "start the server, or fix `base_url` in config.toml"
        } else {
            "check the network and `base_url`"
        };
        let class = if is_refused(error) { ErrorClass::ConnectionRefused } else { ErrorClass::Network };
        CallError::new(class, format!("cannot reach {name} ({base_url}): {}", root_cause(error))).hint(hint)
    }
}

/// Head of a response, and its body as it arrives.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    name: String,
    response: reqwest::Response,
}

impl HttpResponse {
    /// Returns the next bytes; `None` at the end.
    pub(crate) async fn next_chunk(&mut self, watch: &AttemptDeadline) -> Result<Option<Bytes>, CallError> {
        let piece = watch.run(&self.name, self.response.chunk()).await?;
        piece.map_err(|e| {
            CallError::new(ErrorClass::Network, format!("lost the connection to {}: {}", self.name, root_cause(&e)))
        })
    }

    /// Reads the body of an error response up to the limit.
    pub(crate) async fn error_body(mut self, watch: &AttemptDeadline) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.next_chunk(watch).await {
            body.extend_from_slice(&piece);
            if body.len() >= MAX_ERROR_BODY_BYTES {
                body.truncate(MAX_ERROR_BODY_BYTES);
                break;
            }
        }
        body
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// `Network`, `Timeout`, or `Malformed` if it is longer than `limit`.
    pub(crate) async fn body(&mut self, limit: usize, watch: &AttemptDeadline) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while let Some(piece) = self.next_chunk(watch).await? {
            if body.len() + piece.len() > limit {
                return Err(CallError::new(
                    ErrorClass::Malformed,
                    format!("{} sent more than {limit} bytes", self.name),
                ));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Reads the last bytes of a complete response in the background, so that the connection can be reused.
    pub(crate) fn drain_in_background(mut self) {
        chorus_runtime::spawn(async move {
            let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, end).await;
        });
    }
}

/// Deadlines of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptDeadline {
    limits: CallLimits,
    /// Deadline of the whole call.
    total: Instant,
    /// Deadline of the next event.
    next: Instant,
    has_begun: bool,
}

impl AttemptDeadline {
    /// Starts the deadlines of an attempt.
    pub(crate) fn new(limits: CallLimits, total: Instant) -> Self {
        Self { limits, total, next: Instant::now() + limits.first_byte, has_begun: false }
    }

    /// Records that an event arrived.
    pub(crate) fn extend(&mut self) {
        self.has_begun = true;
        self.next = Instant::now() + self.limits.idle;
    }

    /// The earliest deadline.
    pub(crate) fn deadline(&self) -> Instant {
        self.next.min(self.total)
    }

    /// Runs `work` until the deadline.
    pub(crate) async fn run<T>(&self, name: &str, work: impl Future<Output = T>) -> Result<T, CallError> {
        timeout_at(self.deadline(), work).await.map_err(|_| self.timeout_error(name))
    }

    /// The error about a missed deadline.
    pub(crate) fn timeout_error(&self, name: &str) -> CallError {
        let CallLimits { first_byte, idle, total, .. } = self.limits;
        let said = humantime::format_duration;
        let (what, key) = if self.total <= self.next {
            (format!("the call of {name} took longer than {}", said(total)), "total_timeout")
        } else if self.has_begun {
            (format!("{name} stopped sending for {}", said(idle)), "idle_timeout")
        } else {
            (format!("{name} did not start to reply within {}", said(first_byte)), "first_byte_timeout")
        };
        CallError::new(ErrorClass::Timeout, what)
            .hint(format!("try again; or raise `{key}` of [providers.{name}] in config.toml"))
            .mark_accepted()
    }
}

/// Returns whether the connection was refused because nobody listens at the address.
fn is_refused(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if io == Some(std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// The message of the innermost source, which is the informative one.
fn root_cause(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut said = None;
    while let Some(error) = source {
        said = Some(error.to_string());
        source = error.source();
    }
    said.unwrap_or_else(|| {
        if error.is_timeout() { "it took too long".to_owned() } else { "cannot send the request".to_owned() }
    })
}
