//! Limits of models on one request.

use chorus_llm::{ModelRef, Models};

use super::prompt::to_estimated_tokens;

/// Limits of a model, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Context length, for prompt and reply together, in estimated tokens.
    pub tokens: Option<u64>,
    pub images: bool,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { tokens: None, images: true }
    }
}

impl ModelLimits {
    /// Returns the limits of `target`. `ratio` is the ratio of tokens that the model counts to those that are
    /// estimated.
    #[must_use]
    pub fn for_target(models: &Models, target: &ModelRef, ratio: Option<f64>) -> Self {
        let tokens = models.context_length(target).map(|tokens| to_estimated_tokens(tokens, ratio));
        Self { tokens, images: models.accepts_images(target) }
    }
}
