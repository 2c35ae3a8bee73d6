//! Checks before a call that its prompt is not too long for the model, so that the provider need not refuse it.

use std::sync::Arc;

use chorus_llm::{ModelRef, ModelRequest};
use chorus_proto::TokenSource;
use uuid::Uuid;

use super::registry::Registry;
use crate::usage::PromptFingerprint;

/// A prompt is counted if its estimate has at least this part of the context length, in percent. Below that no estimate
/// is so wrong that the count would matter.
const COUNTED_FROM_PERCENT: u64 = 70;

/// A prompt that is about to be sent.
pub(super) struct PromptCheck<'a> {
    pub agent: Uuid,
    pub target: &'a ModelRef,
    pub request: &'a ModelRequest,
    pub print: &'a PromptFingerprint,
    /// Calibration of the model.
    pub ratio: Option<f64>,
}

impl PromptCheck<'_> {
    /// Returns the tokens of the prompt if it is known to leave no room for a reply: by a count, never by an estimate.
    pub(super) async fn exceeding_tokens(&self, registry: &Arc<Registry>) -> Option<u64> {
        let Self { agent, target, request, print, ratio } = self;
        let accepts = registry.models.context_length(target)?;
        let estimate = chorus_llm::tokens_of_request(request) as f64 * ratio.unwrap_or(1.0);
        if (estimate as u64).saturating_mul(100) < accepts.saturating_mul(COUNTED_FROM_PERCENT) {
            return None;
        }
        let counter = &registry.token_counter;
        // Known messages are not counted again, so this takes a moment only after a large one.
        let mut count = counter.count(*agent, target, (request, print), *ratio, true);
        if count.source == TokenSource::Estimated {
            count = counter.ask_provider(*agent, target, request, print).await?;
        }
        (count.tokens >= accepts).then_some(count.tokens)
    }
}
