//! Asks a provider for the number of tokens of a request, if it has an endpoint for that. Such a call is free.

use std::time::Duration;

use chorus_config::CallLimits;
use tokio::time::Instant;

use super::error::{CallError, ErrorClass};
use super::model_client::Models;
use super::model_ref::ModelRef;
use super::providers::{self, RequestTarget, refusal_error};
use super::request::ModelRequest;
use super::transport::AttemptDeadline;

/// Limit of the response in bytes; it has one number.
const MAX_COUNT_BYTES: usize = 64 << 10;

impl Models {
    /// Returns whether the provider of `target` can count tokens.
    #[must_use]
    pub fn can_count(&self, target: &ModelRef) -> bool {
        self.provider(&target.provider).is_some_and(|provider| providers::protocol(provider.kind).can_count())
    }

    /// Asks the provider for the tokens of `request`, in one attempt of at most `limit`.
    ///
    /// # Errors
    /// The reason why there is no count: the provider has no endpoint for it, refused the request or did not answer in
    /// time.
    pub async fn count_tokens(
        &self,
        target: &ModelRef,
        request: &ModelRequest,
        limit: Duration,
    ) -> Result<u64, CallError> {
        let no_endpoint = || CallError::new(ErrorClass::NotFound, format!("{} cannot count tokens", target.provider));
        let provider = self.provider(&target.provider).ok_or_else(no_endpoint)?;
        let (transport, key) = self.connect(&provider).await?;
        let to = RequestTarget {
            provider: &provider,
            key: key.as_ref(),
            model: &target.model,
            images: request.has_images(),
        };
        let protocol = providers::protocol(provider.kind);
        let ask = protocol.build_count_request(&to, request)?.ok_or_else(no_endpoint)?;
        let limits = CallLimits { total: limit, first_byte: limit, ..provider.limits };
        let watch = AttemptDeadline::new(limits, Instant::now() + limit);
        let mut response = transport.send(ask, &watch).await?;
        if !(200..300).contains(&response.status) {
            let (status, headers) = (response.status, response.headers.clone());
            return Err(refusal_error(&to, status, &headers, &response.error_body(&watch).await));
        }
        let body = response.body(MAX_COUNT_BYTES, &watch).await?;
        protocol.parse_count(&body).ok_or_else(|| {
            CallError::new(ErrorClass::Malformed, format!("cannot read the token count of {}", provider.name))
        })
    }
}
