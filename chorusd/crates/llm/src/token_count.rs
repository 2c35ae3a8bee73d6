//! Asks a provider for the number of tokens of a request, if it has an endpoint for that. Such a call is free.

use std::time::Duration;

use super::error::{CallError, ErrorClass};
use super::model_client::Models;
use super::model_ref::ModelRef;
use super::providers;
use super::request::ModelRequest;
use super::single_attempt::SingleAttempt;

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
        let protocol = providers::protocol(provider.kind);
        let attempt = SingleAttempt {
            provider: &provider,
            model: &target.model,
            images: request.has_images(),
            time: limit,
            response_bytes: MAX_COUNT_BYTES,
        };
        let body =
            self.ask_once(attempt, |to| protocol.build_count_request(to, request)?.ok_or_else(no_endpoint)).await?;
        protocol.parse_count(&body).ok_or_else(|| {
            CallError::new(ErrorClass::Malformed, format!("cannot read the token count of {}", provider.name))
        })
    }
}
