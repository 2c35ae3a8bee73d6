//! One attempt at a provider for an answer that is one document: nothing is repeated, and nothing is streamed.

use std::time::Duration;

use chorus_config::{CallLimits, Provider};
use tokio::time::Instant;

use super::error::CallError;
use super::model_client::Models;
use super::providers::{RequestTarget, refusal_error};
use super::transport::{AttemptDeadline, HttpRequest};

/// An attempt at a model of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleAttempt<'a> {
    pub(super) provider: &'a Provider,
    pub(super) model: &'a str,
    /// True if the request has images.
    pub(super) images: bool,
    /// The limit for the whole of it.
    pub(super) time: Duration,
    /// The limit of the response in bytes.
    pub(super) response_bytes: usize,
}

impl Models {
    /// Sends the request that `build` makes, and returns the response.
    ///
    /// # Errors
    /// That of `build`; the provider refused the request, or did not answer within the limits.
    pub(super) async fn ask_once(
        &self,
        attempt: SingleAttempt<'_>,
        build: impl FnOnce(&RequestTarget<'_>) -> Result<HttpRequest, CallError>,
    ) -> Result<Vec<u8>, CallError> {
        let SingleAttempt { provider, model, images, time, response_bytes } = attempt;
        let (transport, key) = self.connect(provider).await?;
        let to = RequestTarget { provider, key: key.as_ref(), model, images };
        let request = build(&to)?;
        let limits = CallLimits { total: time, first_byte: time, ..provider.limits };
        let watch = AttemptDeadline::new(limits, Instant::now() + time);
        let mut response = transport.send(request, &watch).await?;
        if !(200..300).contains(&response.status) {
            let (status, headers) = (response.status, response.headers.clone());
            return Err(refusal_error(&to, status, &headers, &response.error_body(&watch).await));
        }
        response.body(response_bytes, &watch).await
    }
}
