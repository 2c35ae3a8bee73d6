//! One request to the collector.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Secret;
use chorus_base::sync::Mutex;
use chorus_config::{TracesConfig, is_loopback_url};
use chorus_engine::ops::Ops;
use chorus_redact::Redactor;
use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, redirect};
use tokio::time::timeout;

use crate::headers::parse_headers;

/// Limit of a request, the answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of the bytes that are read of an answer.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Path of traces below the endpoint.
const PATH: &str = "/v1/traces";

/// The collector's answer to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has the spans, except those that it rejected.
    Accepted { rejected: u64, why: String },
    /// It may accept them later, after this time if it named one.
    Later { after: Option<Duration>, why: String },
    /// It will not accept them.
    Refused { why: String },
}

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Transport {
    url: String,
    is_loopback: bool,
    config: TracesConfig,
    redactor: Arc<Redactor>,
    client: Mutex<Option<Client>>,
    known_headers: Mutex<String>,
}

impl Transport {
    pub(crate) fn new(ops: &Ops, endpoint: &str) -> Self {
        let url = if endpoint.ends_with(PATH) { endpoint.to_owned() } else { format!("{endpoint}{PATH}") };
        Self {
            is_loopback: is_loopback_url(&url),
            url,
            config: ops.config.traces.clone(),
            redactor: ops.redactor.clone(),
            client: Mutex::default(),
            known_headers: Mutex::default(),
        }
    }

    /// Sends a batch once.
    pub(crate) async fn send(self: &Arc<Self>, body: Vec<u8>) -> Answer {
        match timeout(REQUEST_TIMEOUT, self.try_send(body)).await {
            Ok(answer) => answer,
            Err(_) => Answer::Later { after: None, why: format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()) },
        }
    }

    async fn try_send(self: &Arc<Self>, body: Vec<u8>) -> Answer {
        let this = self.clone();
        // Both may read files.
        let prepared = chorus_runtime::spawn_blocking(move || Ok((this.client()?, this.headers()?))).await;
        let (client, headers) = match prepared.unwrap_or_else(|e| Err(e.to_string())) {
            Ok(prepared) => prepared,
            Err(why) => return Answer::Later { after: None, why },
        };
        let request = client.post(&self.url).headers(headers).header(CONTENT_TYPE, "application/x-protobuf").body(body);
        match request.send().await {
            Ok(response) => self.read_answer(response).await,
            Err(error) => Answer::Later { after: None, why: root_cause(&error) },
        }
    }

    async fn read_answer(&self, mut response: Response) -> Answer {
        let status = response.status();
        let after = retry_after(response.headers(), Timestamp::now());
        if !status.is_success() {
            let why = format!("the collector answered {}", status.as_u16());
            return if matches!(status.as_u16(), 429 | 502 | 503 | 504) {
                Answer::Later { after, why }
            } else {
                Answer::Refused { why }
            };
        }
        let mut body = Vec::new();
        while body.len() < MAX_ANSWER_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
        // Some collectors answer with something else, although they have the spans.
        let partial = ExportTraceServiceResponse::decode(&*body).ok().and_then(|answer| answer.partial_success);
        let (rejected, message) =
            partial.map_or((0, String::new()), |partial| (partial.rejected_spans, partial.error_message));
        let message: String = message.chars().filter(|c| !c.is_control()).take(200).collect();
        let why = format!("the collector rejected them: {}", self.redactor.redact_message(&message));
        Answer::Accepted { rejected: u64::try_from(rejected).unwrap_or(0), why }
    }

    /// Returns the client, which the first call makes. Blocks, because it reads the machine's certificates.
    fn client(&self) -> Result<Client, String> {
        let mut known = self.client.lock();
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let mut builder = Client::builder()
            .tls_backend_preconfigured(chorus_tls::client_config())
            .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never());
        if self.is_loopback {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|e| format!("cannot use TLS: {}", root_cause(&e)))?;
        *known = Some(client.clone());
        Ok(client)
    }

    /// Reads the headers. Blocks. They are secrets, which nothing else may show.
    fn headers(&self) -> Result<HeaderMap, String> {
        let text = self.config.read_headers()?;
        let headers = parse_headers(text.expose())?;
        let mut known = self.known_headers.lock();
        if *known != text.expose() {
            for value in headers.values().filter_map(|value| value.to_str().ok()) {
                let key = value.rsplit(' ').next().unwrap_or(value);
                self.redactor.add_own_key(&Secret::new(key.to_owned()));
            }
            text.expose().clone_into(&mut known);
        }
        Ok(headers)
    }
}

/// Returns how long to wait: seconds, or the time until a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// Returns the innermost reason, without the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.source().is_none() { "the connection failed".to_owned() } else { cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collector_names_seconds_or_a_date() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        for (value, seconds) in [
            ("7", Some(7)),
            ("Mon, 30 Nov 2026 12:00:05 GMT", Some(5)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{value}");
        }
    }
}
