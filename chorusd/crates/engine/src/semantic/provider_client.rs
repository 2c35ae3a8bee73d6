//! Asks a provider for vectors, and counts what that costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_llm::{ModelRef, Models};

use crate::usage::{EmbeddingCall, UsageTracker};

/// Makes vectors with the models of providers.
#[derive(Debug, Clone)]
pub(super) struct ProviderClient {
    models: Arc<Models>,
    usage: Arc<UsageTracker>,
}

impl ProviderClient {
    pub(super) fn new(models: Arc<Models>, usage: Arc<UsageTracker>) -> Self {
        Self { models, usage }
    }

    pub(super) fn models(&self) -> &Models {
        &self.models
    }

    /// Makes the vectors of texts, of length 1, in one attempt of at most `limit`.
    pub(super) async fn embed(
        &self,
        target: &ModelRef,
        texts: &[&str],
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, String> {
        let started = Instant::now();
        let made = self.models.embed(target, texts, limit).await.map_err(|error| error.to_string())?;
        let call = EmbeddingCall {
            target,
            texts,
            tokens: made.tokens,
            price: self.models.price(target),
            duration: started.elapsed(),
        };
        self.usage.record_embedding(call).await;
        let normalised = made.vectors.into_iter().map(chorus_embeddings::normalised);
        normalised.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }
}
